/* ---- Launch: makes tensors, launches kernels on them, and returns those that are asked for. Wherever anything is other
   than it was when this was prepared, `ordinary` does it all.
   held: ordinary; a list of the dictionaries that hooks are in, and how kernels are launched; a tuple of lists, the
   hooks, which must be empty while these do not change; empty; a tuple of what it is called with for each tensor that is
   made, or of the function that gives it, the last for all scratch together; Triton's settings and the names of its hooks there; classes of kernels, each
   before the function that launches them; kernels, whose own hooks must be empty; the device's number; what is compiled,
   which stays loaded.
   A kernel's argument is a tensor with an offset, so that a view which only kernels read is never made. */
#define DIMENSIONS 8
typedef struct {
    int64_t dim;                    /* -1: it lies so wherever this is called */
    int64_t sizes[DIMENSIONS], strides[DIMENSIONS];
} Lies;

typedef struct {
    uint64_t function;
    unsigned grid[3], threads, shared;
    int early;                      /* it may start before the kernel before it has ended, and waits itself */
    int count, of[MOST];            /* arguments: which tensor's memory each is in */
    uint64_t offset[MOST];          /* and where */
} Kernel;

typedef int (*launcher)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                        void **);
/* As in cuda.h: CUlaunchAttribute and CUlaunchConfig, and the number of the attribute. */
enum { PROGRAMMATIC_STREAM_SERIALIZATION = 6 };
typedef struct {
    int id;
    union { uint64_t words[8]; int allowed; } value;
} Attribute;
typedef struct {
    unsigned grid[3], block[3], shared;
    void *stream;
    Attribute *attributes;
    unsigned count;
} Config;
_Static_assert(sizeof(Attribute) == 72 && offsetof(Attribute, value) == 8, "CUlaunchAttribute");
_Static_assert(sizeof(Config) == 56 && offsetof(Config, stream) == 32, "CUlaunchConfig");
typedef int (*early_launcher)(const Config *, void *, void **, void **);
typedef int (*asker)(void *, int *);
typedef int (*place_asker)(int *);
typedef int (*stream_asker)(int32_t, void **);

typedef struct {
    Base base;
    long device;
    launcher launch;
    early_launcher launch_early;
    asker capturing;
    place_asker place;
    stream_asker stream;
    uint64_t time;                  /* of the dictionaries, when nobody watched */
    int valid;
    int given, making, scratch;     /* scratch: whether the last that is made is */
    int read[MOST];                 /* parameters: 0: by no kernel, 1: at multiples of 16 bytes, 2: at any address */
    int kernels, results, result[MOST];
    Kernel *kernel;
    Lies *lies;                     /* how parameters have to lie; NULL: none is asked for that */
    PyObject *spare;                /* scratch of the last call, on the stream it was for */
    void *spare_stream;
} Launch;

static int empty_attribute(PyObject *owner, PyObject *name) {
    return truth(PyObject_GetAttr(owner, name));
}

/* 1 where somebody watches launches, or they are done in another way now. */
static int watched(Launch *one) {
    PyObject *hooks = one->base.held[5], *kinds = one->base.held[6], *jits = one->base.held[7];
    for (Py_ssize_t i = 1; i < PyTuple_GET_SIZE(hooks); i++) {
        PyObject *chain = PyObject_GetAttr(PyTuple_GET_ITEM(hooks, 0), PyTuple_GET_ITEM(hooks, i));
        int is = chain ? empty_attribute(chain, calls) : -1;
        Py_XDECREF(chain);
        if (is) return is;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kinds); i += 2) {
        PyObject *now = PyObject_GetAttr(PyTuple_GET_ITEM(kinds, i), run);
        if (!now) return -1;
        Py_DECREF(now);
        if (now != PyTuple_GET_ITEM(kinds, i + 1)) return 1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(jits); i++) {
        int is = empty_attribute(PyTuple_GET_ITEM(jits, i), hooks_before);
        if (is) return is;
    }
    return 0;
}

/* The same, without reading all of it where no dictionary has changed. */
static int watched_now(Launch *one) {
    PyObject **held = one->base.held;
    uint64_t time = time_of(held[1]);
    if (one->valid && time == one->time) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(held[2]); i++)
            if (PyList_GET_SIZE(PyTuple_GET_ITEM(held[2], i))) return 1;
        return 0;
    }
    int is = watched(one);
    one->valid = !is && PyList_GET_SIZE(held[1]);
    one->time = time;
    return is;
}

static int launch_one(Launch *one, const Kernel *kernel, void *stream, void **pointers) {
    const unsigned *grid = kernel->grid;
    if (!kernel->early)
        return one->launch((void *)kernel->function, grid[0], grid[1], grid[2], kernel->threads, 1, 1, kernel->shared,
                           stream, pointers, NULL);
    Attribute attribute = {PROGRAMMATIC_STREAM_SERIALIZATION, {{0}}};
    attribute.value.allowed = 1;
    Config config = {{grid[0], grid[1], grid[2]}, {kernel->threads, 1, 1}, kernel->shared, stream, &attribute, 1};
    return one->launch_early(&config, (void *)kernel->function, pointers, NULL);
}

static int launch_all(Launch *one, const uint64_t *places, void *stream) {
    int trouble = 0;
    uint64_t values[MOST + 2];
    void *pointers[MOST + 2];
    for (int i = 0; i < MOST + 2; i++) pointers[i] = &values[i];
    Py_BEGIN_ALLOW_THREADS
    for (int k = 0; k < one->kernels && !trouble; k++) {
        const Kernel *kernel = &one->kernel[k];
        for (int i = 0; i < kernel->count; i++) values[i] = places[kernel->of[i]] + kernel->offset[i];
        values[kernel->count] = values[kernel->count + 1] = 0; /* scratch of Triton's own, which it has none of */
        trouble = launch_one(one, kernel, stream, pointers);
    }
    Py_END_ALLOW_THREADS
    return trouble;
}

static int lies_so(PyObject *tensor, const Lies *wanted) {
    void *handle = handle_of(tensor);
    int64_t dim, *sizes, *strides;
    if (wanted->dim < 0) return 1;
    if (!handle || read_dim(handle, &dim) || dim != wanted->dim || read_sizes(handle, &sizes) ||
        read_strides(handle, &strides))
        return 0;
    return !memcmp(sizes, wanted->sizes, dim * sizeof(int64_t)) &&
           !memcmp(strides, wanted->strides, dim * sizeof(int64_t));
}

/* A tensor: of what `empty` is called with, or what a function gives. */
static PyObject *made_by(PyObject *empty, PyObject *how) {
    return PyTuple_Check(how) ? PyObject_Call(empty, how, NULL) : PyObject_CallNoArgs(how);
}

/* What is made; True where nothing is. */
static PyObject *results_of(Launch *one, PyObject **made) {
    if (!one->results) return Py_NewRef(Py_True);
    if (one->results == 1) return Py_NewRef(made[one->result[0]]);
    PyObject *all = PyTuple_New(one->results);
    for (int i = 0; all && i < one->results; i++) PyTuple_SET_ITEM(all, i, Py_NewRef(made[one->result[i]]));
    return all;
}

/* 1: the kernels are launched, and `result` is what they make; 0: `ordinary` is to do it; -1: an exception is set. */
static int launch_on(Launch *one, PyObject *const *given, PyObject **result) {
    PyObject **held = one->base.held, *made[MOST] = {NULL};
    uint64_t places[MOST];
    void *stream;
    int is, device, making = one->making - one->scratch, status = 0;
    for (int i = 0; i < one->given; i++) {
        if (one->lies && !lies_so(given[i], &one->lies[i])) return 0;
        if (!one->read[i]) continue;
        if (address(given[i], &places[i])) return -1;
        if (one->read[i] == 1 && places[i] & 15) return 0;
    }
    if ((is = watched_now(one))) {
        if (is < 0 && !PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
        PyErr_Clear();
        return 0;
    }
    if (one->place(&device) || device != one->device || one->stream(device, &stream)) return 0;
    if (one->scratch) {
        if (one->capturing(stream, &status)) status = 1;
        if (one->spare && one->spare_stream == stream && !status) {
            made[making] = one->spare;
            one->spare = NULL;
        }
    }
    is = -1;
    for (int i = 0; i < one->making; i++) {
        if (!made[i]) made[i] = made_by(held[3], PyTuple_GET_ITEM(held[4], i));
        if (!made[i] || address(made[i], &places[one->given + i])) goto done;
    }
    is = launch_all(one, places, stream) ? 0 : (*result = results_of(one, made)) ? 1 : -1;
    if (is == 1 && one->scratch && !status) {
        Py_XSETREF(one->spare, made[making]);
        made[making] = NULL;
        one->spare_stream = stream;
    }
done:
    for (int i = 0; i < one->making; i++) Py_XDECREF(made[i]);
    return is;
}

static PyObject *launch_call(PyObject *self, PyObject *const *given, size_t flags, PyObject *names) {
    Launch *one = (Launch *)self;
    PyObject *result = NULL;
    if (PyVectorcall_NARGS(flags) == one->given && !names) {
        int is = launch_on(one, given, &result);
        if (is) return is < 0 ? NULL : result;
    }
    return PyObject_Vectorcall(one->base.held[0], given, flags, names);
}

static int kernel_of(PyObject *row, int places, Kernel *kernel) {
    PyObject *arguments;
    unsigned long long function;
    if (!PyTuple_Check(row)) {
        PyErr_SetString(PyExc_TypeError, "a kernel is told of by a tuple");
        return -1;
    }
    if (!PyArg_ParseTuple(row, "K(III)IIpO!", &function, &kernel->grid[0], &kernel->grid[1], &kernel->grid[2],
                          &kernel->threads, &kernel->shared, &kernel->early, &PyTuple_Type, &arguments))
        return -1;
    kernel->function = function;
    kernel->count = (int)PyTuple_GET_SIZE(arguments);
    for (int i = 0; i < kernel->count && i < MOST; i++) {
        unsigned long long offset;
        if (!PyTuple_Check(PyTuple_GET_ITEM(arguments, i))) break;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(arguments, i), "iK", &kernel->of[i], &offset)) return -1;
        kernel->offset[i] = offset;
        if (kernel->of[i] < 0 || kernel->of[i] >= places) break;
        if (i + 1 == kernel->count) return 0;
    }
    PyErr_SetString(PyExc_ValueError, "a kernel of no arguments, of too many, or of tensors that there are none of");
    return -1;
}

static int numbers_of(PyObject *row, int64_t *numbers, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++)
        if ((numbers[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(row, i))) == -1 && PyErr_Occurred()) return -1;
    return 0;
}

static int lies_of(PyObject *row, Lies *lies) {
    PyObject *sizes, *strides;
    lies->dim = -1;
    if (row == Py_None) return 0;
    if (!PyTuple_Check(row)) return PyErr_Format(PyExc_TypeError, "sizes and strides are a tuple"), -1;
    if (!PyArg_ParseTuple(row, "O!O!", &PyTuple_Type, &sizes, &PyTuple_Type, &strides)) return -1;
    lies->dim = PyTuple_GET_SIZE(sizes);
    if (lies->dim > DIMENSIONS || lies->dim != PyTuple_GET_SIZE(strides))
        return PyErr_Format(PyExc_ValueError, "more dimensions than %d, or not a stride for each", DIMENSIONS), -1;
    return numbers_of(sizes, lies->sizes, lies->dim) || numbers_of(strides, lies->strides, lies->dim) ? -1 : 0;
}

/* Launch(objects, device, (launches, launches early, asks whether a stream is captured, which device and stream are
   current), whether the last that is made is scratch, how kernels read parameters, how these have to lie, kernels,
   results). objects: as in held; how they lie: sizes and strides, None where they always do; results: which of what is
   made, where something is */
static PyObject *launch_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(names)) {
    PyObject *objects, *read, *lies, *kernels, *results;
    unsigned long long launch, early, asks, place, stream;
    long device;
    int scratch;
    if (!PyArg_ParseTuple(args, "O!l(KKKKK)pO!O!O!O!", &PyTuple_Type, &objects, &device, &launch, &early, &asks,
                          &place, &stream, &scratch, &PyTuple_Type, &read, &PyTuple_Type, &lies, &PyTuple_Type,
                          &kernels, &PyTuple_Type, &results))
        return NULL;
    if (PyTuple_GET_SIZE(objects) != HELD) return PyErr_Format(PyExc_ValueError, "%d objects are wanted", HELD);
    for (int i = 2; i < 8; i++)
        if (i != 3 && !PyTuple_Check(PyTuple_GET_ITEM(objects, i)))
            return PyErr_Format(PyExc_TypeError, "object %d: a tuple", i);
    PyObject *dicts = PyTuple_GET_ITEM(objects, 1), *lists = PyTuple_GET_ITEM(objects, 2);
    if (!PyList_Check(dicts) || !dicts_only(dicts, 1) || watch(dicts)) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "object 1: a list of dictionaries");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(lists); i++)
        if (!PyList_CheckExact(PyTuple_GET_ITEM(lists, i)))
            return PyErr_Format(PyExc_TypeError, "object 2: a tuple of lists");
    Py_ssize_t making = PyTuple_GET_SIZE(PyTuple_GET_ITEM(objects, 4)), given = PyTuple_GET_SIZE(read);
    Py_ssize_t wanted = PyTuple_GET_SIZE(results);
    if (making + given > MOST || scratch > making || wanted > MOST || (making > scratch && !wanted) || !launch ||
        !early || !asks || !place || !stream || PyTuple_GET_SIZE(lies) != given ||
        PyTuple_GET_SIZE(PyTuple_GET_ITEM(objects, 6)) % 2)
        return PyErr_Format(PyExc_ValueError, "more tensors than %d, or no results", MOST);
    Launch *one = (Launch *)type->tp_alloc(type, 0);
    if (!one) return NULL;
    one->base.call = launch_call;
    for (int i = 0; i < HELD; i++) keep(one, i, PyTuple_GET_ITEM(objects, i));
    one->device = device;
    one->launch = (launcher)(uintptr_t)launch;
    one->launch_early = (early_launcher)(uintptr_t)early;
    one->capturing = (asker)(uintptr_t)asks;
    one->place = (place_asker)(uintptr_t)place;
    one->stream = (stream_asker)(uintptr_t)stream;
    one->given = (int)given;
    one->making = (int)making;
    one->scratch = scratch;
    one->kernels = (int)PyTuple_GET_SIZE(kernels);
    one->results = (int)wanted;
    for (int i = 0; i < one->given; i++) {
        long way = PyLong_AsLong(PyTuple_GET_ITEM(read, i));
        if (way < 0 || way > 2) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a parameter is read in one of three ways");
            goto failed;
        }
        one->read[i] = (int)way;
    }
    for (int i = 0; i < one->results; i++) {
        long at = PyLong_AsLong(PyTuple_GET_ITEM(results, i));
        if (at < 0 || at >= making - scratch) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a result that is not made");
            goto failed;
        }
        one->result[i] = (int)at;
    }
    one->kernel = PyMem_Calloc(one->kernels + 1, sizeof(Kernel));
    one->lies = PyMem_Calloc(given + 1, sizeof(Lies));
    if (!one->kernel || !one->lies) {
        PyErr_NoMemory();
        goto failed;
    }
    int asked = 0;
    for (int i = 0; i < one->given; i++) {
        if (lies_of(PyTuple_GET_ITEM(lies, i), &one->lies[i])) goto failed;
        asked |= one->lies[i].dim >= 0;
    }
    if (!asked) {
        PyMem_Free(one->lies);
        one->lies = NULL;
    }
    for (int i = 0; i < one->kernels; i++) {
        const Kernel *kernel = &one->kernel[i];
        if (kernel_of(PyTuple_GET_ITEM(kernels, i), one->given + one->making, &one->kernel[i])) goto failed;
        for (int k = 0; k < kernel->count; k++)
            if (kernel->of[k] < one->given && !one->read[kernel->of[k]]) {
                PyErr_SetString(PyExc_ValueError, "a kernel reads a parameter that is said to be read by none");
                goto failed;
            }
    }
    return (PyObject *)one;
failed:
    Py_DECREF(one);
    return NULL;
}

static void launch_dealloc(PyObject *self) {
    PyObject_GC_UnTrack(self);
    PyMem_Free(((Launch *)self)->kernel);
    PyMem_Free(((Launch *)self)->lies);
    Py_CLEAR(((Launch *)self)->spare);
    dealloc(self);
}

/* ---- Now: launches where nothing traces it, on the device of the tensors. held: a Launch; what does it otherwise. */
typedef struct { Base base; } Now;

static int is_here(const Launch *one, PyObject *tensor) {
    void *handle = handle_of(tensor);
    int32_t device = -1;
    return handle && !read_device(handle, &device) && device == one->device;
}

static PyObject *now_call(PyObject *self, PyObject *const *given, size_t flags, PyObject *names) {
    PyObject **held = ((Base *)self)->held, *result = NULL;
    Launch *one = (Launch *)held[0];
    int is = PyVectorcall_NARGS(flags) == one->given && !names && is_here(one, given[0]) ? untraced() : 0;
    if (is > 0) is = launch_on(one, given, &result);
    if (is) return is < 0 ? NULL : result;
    return PyObject_Vectorcall(held[1], given, flags, names);
}

static PyObject *now_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(names)) {
    PyObject *launch, *otherwise;
    if (!PyArg_ParseTuple(args, "OO", &launch, &otherwise)) return NULL;
    if (!is_a(launch, LAUNCH) || !handle_at)
        return PyErr_Format(PyExc_TypeError, "no launch, or tensors cannot be read");
    Now *one = (Now *)type->tp_alloc(type, 0);
    if (!one) return NULL;
    one->base.call = now_call;
    keep(one, 0, launch);
    keep(one, 1, otherwise);
    return (PyObject *)one;
}

/* ---- Done: what a region gives, where it is one launch on tensors that are known; None where Python is to do it. held: a
   dictionary of Known objects by the number of an argument; a Launch. */
typedef struct {
    Base base;
    Py_ssize_t at;
    int count, order[MOST]; /* which of the region's tensors each parameter of the launch is */
} Done;

static PyObject *done_call(PyObject *self, PyObject *const *given, size_t flags, PyObject *names) {
    Done *one = (Done *)self;
    Launch *launch = (Launch *)one->base.held[1];
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    PyObject *tensors[REGION], *ordered[MOST], *result = NULL;
    Known *known = names ? NULL : known_of(one->base.held[0], one->at, given, count);
    int is = known && known->tensors >= one->count && gathered(known, given, count, tensors) ? untraced() : 0;
    for (int i = 0; is > 0 && i < one->count; i++) {
        if (one->order[i] >= known->tensors) is = 0;
        else ordered[i] = tensors[one->order[i]];
    }
    if (is > 0) is = is_here(launch, ordered[0]) ? launch_on(launch, ordered, &result) : 0;
    Py_XDECREF(known);
    if (is > 0) return result;
    if (PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
        PyErr_Clear(); /* Python says it again */
    }
    Py_RETURN_NONE;
}

/* Done(known, which argument, launch, order) */
static PyObject *done_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(names)) {
    PyObject *known, *launch, *order;
    Py_ssize_t at;
    if (!PyArg_ParseTuple(args, "O!nOO!", &PyDict_Type, &known, &at, &launch, &PyTuple_Type, &order)) return NULL;
    if (!is_a(launch, LAUNCH) || !handle_at || at < 0 ||
        PyTuple_GET_SIZE(order) != ((Launch *)launch)->given || !PyTuple_GET_SIZE(order))
        return PyErr_Format(PyExc_TypeError, "no launch of these tensors, or tensors cannot be read");
    Done *one = (Done *)type->tp_alloc(type, 0);
    if (!one) return NULL;
    one->base.call = done_call;
    one->at = at;
    keep(one, 0, known);
    keep(one, 1, launch);
    for (; one->count < PyTuple_GET_SIZE(order); one->count++) {
        long which = PyLong_AsLong(PyTuple_GET_ITEM(order, one->count));
        if (which < 0 || which >= REGION) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "no such tensor");
            Py_DECREF(one);
            return NULL;
        }
        one->order[one->count] = (int)which;
    }
    return (PyObject *)one;
}
