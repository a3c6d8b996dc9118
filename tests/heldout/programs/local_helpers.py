import torch


def _project(x, w, bias=None):
    y = x @ w
    if bias is not None:
        y = y + bias
    return y


# mugraph: x=f32[18, 56], w1=f32[56, 72], b1=f32[72], w2=f32[72, 24]
def two_layers(x, w1, b1, w2):
    def swish(t):
        return t * torch.sigmoid(t)

    hidden = swish(_project(x, w1, b1))
    return _project(hidden, w2)


# mugraph: x=f32[16, 64], y=f32[16, 64]
def residual_mean(x, y):
    double = lambda t: t + t  # noqa: E731
    total = double(x) + y
    centred = total - total.mean(dim=1, keepdim=True)
    var = (centred * centred).mean(dim=1, keepdim=True)
    return centred / torch.sqrt(var + 1e-5)
