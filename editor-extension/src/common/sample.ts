import * as vscode from "vscode";

// A file, not an untitled document: the kernel module is written beside it.
const NAME = "mugraph_sample.py";
const TEXT = `"""RMSNorm followed by a linear layer: what precedes every attention and every MLP of a Llama."""

import torch
from torch import nn


# mugraph: x=f16[2, 4096]
class RMSNormLinear(nn.Module):
    def __init__(self, hidden: int = 4096, out: int = 6144, eps: float = 1e-6, dtype: torch.dtype = torch.float16):
        super().__init__()
        self.norm = nn.RMSNorm(hidden, eps=eps, dtype=dtype)
        self.linear = nn.Linear(hidden, out, bias=False, dtype=dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.norm(x))
`;

/** Opens the sample in the workspace; in a folder that is asked for where there is none. */
export async function openSample(): Promise<void> {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri ?? (await askForFolder());
  if (folder === undefined) return;
  const file = vscode.Uri.joinPath(folder, NAME);
  try {
    await vscode.workspace.fs.stat(file);
  } catch {
    await vscode.workspace.fs.writeFile(file, new TextEncoder().encode(TEXT));
  }
  await vscode.window.showTextDocument(file, { preview: false });
}

async function askForFolder(): Promise<vscode.Uri | undefined> {
  const options = { canSelectFiles: false, canSelectFolders: true, openLabel: "Put the sample here" };
  return (await vscode.window.showOpenDialog(options))?.[0];
}
