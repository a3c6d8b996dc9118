import torch


# mugraph: a=f32[50, 24], b=f32[70, 24]
def squared_distances(a, b):
    aa = (a**2).sum(1)[:, None]
    bb = (b**2).sum(1)[None, :]
    return aa + bb - 2 * a @ b.T


# mugraph: points=f32[64, 20]
def gram(points):
    return points @ points.T


# mugraph: x=f32[40, 16], centres=f32[12, 16]
def rbf_features(x, centres):
    d2 = (x.unsqueeze(1) - centres.unsqueeze(0)).square().sum(-1)
    return torch.exp(-0.5 * d2)
