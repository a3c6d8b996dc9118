"""As maps, with channels last: the kernel has one axis of all places, and a size is read after it."""


# mugraph: few=1..5, wide=2..70, image=f32[few, 6, 9, wide]
def channels_last(image):
    centred = image - image.mean(-1, keepdim=True)
    return centred / (centred.abs().amax(-1, keepdim=True) + 0.01)
