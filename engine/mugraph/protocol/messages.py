"""The messages, and the exchanges they make.

Requests have an `id` that the server chooses, unique while it is open. Each gets exactly one answer with that id: the
type its docstring names, or `Failed`. `Search` gets events before its answer. Any number of requests may be open; only
`Find` and `Search` wait for each other (in the queue), everything else is answered at once, also during a search.

    server                                engine
    Hello ------------------------------> Ready                                    first, once
    Configure --------------------------> Configured                               any time
    Find -------------------------------> Found                                    in its turn
    Search -----------------------------> (Found?, then per region (RegionChanged | Progress | FirstHit | BetterHit
                                          | AnotherHit)*)*, then Finished          in its turn
    Cancel, CancelDocument, Close                                                  no answer; see each
    PrepareEdit, PrepareRevert,
      InsertShapes ---------------------> Edit
    Draw -------------------------------> Drawing
    Preview ----------------------------> KernelPreview
    CheckKernels -----------------------> KernelChecks
    AskRecordings ----------------------> Recordings
    AskReport --------------------------> Report
    Ping -------------------------------> Pong
    Exit                                  the process ends with 0; so it does when its standard input ends
                                          Log, Notice                              any time

Versions. Whatever is about a document carries its uri and version. A request for a newer version of a document ends the
older jobs of the same document with outcome "superseded"; messages about an older version than the latest asked for are
not sent. The server still has to compare: a message may be under way while the user types.

Errors. Nothing but messages is ever written to standard output. What goes wrong is one sentence in `Failed.message` or
`Finished.message`; details are in the log file that `Report.log_path` names. A line that is no message is answered with
`Failed` (id null where the line shows none), and the engine goes on.
"""

from __future__ import annotations

from mugraph.protocol.from_engine import (
    AnotherHit,
    BetterHit,
    Configured,
    Drawing,
    Edit,
    Failed,
    Finished,
    FirstHit,
    Found,
    KernelChecks,
    KernelPreview,
    Log,
    Notice,
    Pong,
    Progress,
    Ready,
    Recordings,
    RegionChanged,
    Report,
)
from mugraph.protocol.from_server import (
    AskRecordings,
    AskReport,
    Cancel,
    CancelDocument,
    CheckKernels,
    Close,
    Configure,
    Draw,
    Exit,
    Find,
    Hello,
    InsertShapes,
    Ping,
    PrepareEdit,
    PrepareRevert,
    Preview,
    Prioritise,
    Search,
)
from mugraph.protocol.version import PROTOCOL as PROTOCOL

ToEngine = (
    Hello | Configure | Find | Search | Prioritise | Cancel | CancelDocument | Close | PrepareEdit | PrepareRevert
    | InsertShapes | Draw | Preview | CheckKernels | AskRecordings | AskReport | Ping | Exit
)  # fmt: skip
FromEngine = (
    Ready | Configured | Found | RegionChanged | Progress | FirstHit | BetterHit | AnotherHit | Finished | Edit
    | Drawing | KernelPreview | KernelChecks | Recordings | Report | Pong | Failed | Log | Notice
)  # fmt: skip
