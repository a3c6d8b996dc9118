#if PY_VERSION_HEX >= 0x030D0000
static int is_last(PyObject *last, Py_ssize_t at, PyObject *tensor) {
    PyObject *one = NULL;
    if (at >= PyList_GET_SIZE(last) || PyList_GET_ITEM(last, at) == Py_None) return 0;
    if (PyWeakref_GetRef(PyList_GET_ITEM(last, at), &one) <= 0) return 0;
    Py_DECREF(one); /* the caller holds it, if it is the same */
    return one == tensor;
}
#else
static int is_last(PyObject *last, Py_ssize_t at, PyObject *tensor) {
    if (at >= PyList_GET_SIZE(last) || PyList_GET_ITEM(last, at) == Py_None) return 0;
    return PyWeakref_GET_OBJECT(PyList_GET_ITEM(last, at)) == tensor;
}
#endif

/* Of a tensor to compare, which a nested one is not; 1 where it is one. */
static int is_nested(PyObject *last, Py_ssize_t at, PyObject *tensor) {
    if (is_last(last, at, tensor)) return 0;
    int is = truth(PyObject_GetAttr(tensor, nested));
    if (is || (PyObject *)Py_TYPE(tensor) != parameter) return is;
    while (PyList_GET_SIZE(last) < at)
        if (PyList_Append(last, Py_None)) return -1;
    PyObject *one = PyWeakref_NewRef(tensor, NULL);
    if (!one) return -1;
    if (at < PyList_GET_SIZE(last)) return PyList_SetItem(last, at, one);
    is = PyList_Append(last, one);
    Py_DECREF(one);
    return is;
}

/* ---- Alike: what tensors that fitted were, read without asking Python. held: PyTorch's own comparison with the first
   of them, which also tells modes, transforms and autocast, that change what PyTorch's functions compute. */
typedef struct {
    PyTypeObject *kind;
    uint64_t keys;
    int64_t dim, *sizes; /* sizes, then strides */
    int32_t dtype, device;
} Seen;

typedef struct {
    Base base;
    int count;
    Seen *seen;
} Alike;

static int sees(PyObject *tensor, Seen *one, int64_t **sizes, int64_t **strides) {
    void *handle = handle_of(tensor);
    if (!handle) return -1;
    one->kind = Py_TYPE(tensor);
    one->keys = keys_of(handle);
    return read_dtype(handle, &one->dtype) || read_device(handle, &one->device) || read_dim(handle, &one->dim) ||
                   read_sizes(handle, sizes) || read_strides(handle, strides)
               ? -1
               : 0;
}

static int is_alike(const Seen *one, PyObject *tensor) {
    Seen now;
    int64_t *sizes, *strides;
    void *handle = handle_of(tensor);
    if (!handle || keys_of(handle) != one->keys || sees(tensor, &now, &sizes, &strides)) return 0; /* keys first */
    size_t length = one->dim * sizeof(int64_t);
    return now.kind == one->kind && now.dtype == one->dtype && now.device == one->device && now.dim == one->dim &&
           !memcmp(sizes, one->sizes, length) && !memcmp(strides, one->sizes + one->dim, length);
}

static int all_alike(Alike *one, PyObject *const *tensors, Py_ssize_t count) {
    if (count != one->count) return 0;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!is_alike(&one->seen[i], tensors[i])) return 0;
    return truth(PyObject_CallOneArg(one->base.held[0], tensors[0]));
}

static PyObject *alike_call(PyObject *self, PyObject *const *tensors, size_t flags, PyObject *Py_UNUSED(names)) {
    int is = all_alike((Alike *)self, tensors, PyVectorcall_NARGS(flags));
    return is < 0 ? NULL : PyBool_FromLong(is);
}

static PyObject *alike_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(names)) {
    PyObject *first, *tensors;
    if (!PyArg_ParseTuple(args, "OO!", &first, &PyTuple_Type, &tensors)) return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(tensors);
    if (!handle_at || !count || count > REGION)
        return PyErr_Format(PyExc_ValueError, "no tensors, more than %d, or none can be read", REGION);
    Alike *one = (Alike *)type->tp_alloc(type, 0);
    if (!one) return NULL;
    one->base.call = alike_call;
    keep(one, 0, first);
    if (!(one->seen = PyMem_Calloc(count, sizeof(Seen)))) goto failed;
    for (one->count = 0; one->count < count; one->count++) {
        Seen *now = &one->seen[one->count];
        int64_t *sizes, *strides;
        if (sees(PyTuple_GET_ITEM(tensors, one->count), now, &sizes, &strides)) {
            PyErr_SetString(PyExc_TypeError, "a tensor of another kind");
            goto failed;
        }
        size_t length = now->dim * sizeof(int64_t);
        if (!(now->sizes = PyMem_Malloc(2 * length + 1))) goto failed;
        memcpy(now->sizes, sizes, length);
        memcpy(now->sizes + now->dim, strides, length);
    }
    return (PyObject *)one;
failed:
    Py_DECREF(one);
    return PyErr_Occurred() ? NULL : PyErr_NoMemory();
}

static void alike_dealloc(PyObject *self) {
    Alike *one = (Alike *)self;
    PyObject_GC_UnTrack(self);
    for (int i = 0; one->seen && i < one->count; i++) PyMem_Free(one->seen[i].sizes);
    PyMem_Free(one->seen);
    dealloc(self);
}

/* ---- Fit: whether tensors are like others that fitted. held: the list of (PyTorch's comparison with some tensors,
   whether it holds without gradients only, the same as an Alike or None), which may grow; a list of weak references to
   the parameters of the last call, which are not nested (none becomes so). anywhere: of the first 64 tensors, a bit for
   each that may begin at any address. */
typedef struct { Base base; unsigned long long anywhere; } Fit;

/* Whether they are like one row. */
static int fits_row(PyObject *row, PyObject *last, int grad, PyObject *const *tensors, Py_ssize_t count) {
    PyObject *quick = PyTuple_GET_ITEM(row, 2);
    if (grad && PyTuple_GET_ITEM(row, 1) == Py_True) return 0;
    if (!grad && is_a(quick, ALIKE)) return all_alike((Alike *)quick, tensors, count);
    for (Py_ssize_t i = 0; i < count; i++) {
        int is = is_nested(last, i, tensors[i]);
        if (is) return is < 0 ? -1 : 0;
    }
    return truth(PyObject_Vectorcall(PyTuple_GET_ITEM(row, 0), tensors, count, NULL));
}

static int fit_tensors(Fit *one, PyObject *const *tensors, Py_ssize_t count) {
    PyObject *known = one->base.held[0];
    int is = undisturbed(), grad;
    if (is <= 0) return is;
    for (Py_ssize_t i = 0; i < count; i++) {
        uint64_t place;
        if (address(tensors[i], &place)) return -1;
        if (place & 15 && (i >= 64 || !(one->anywhere >> i & 1))) return 0;
    }
    if ((grad = truth(PyObject_CallNoArgs(with_grad))) < 0) return -1;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(known); i++) {
        PyObject *row = Py_NewRef(PyList_GET_ITEM(known, i));
        is = PyTuple_Check(row) && PyTuple_GET_SIZE(row) == 3 ? fits_row(row, one->base.held[1], grad, tensors, count)
                                                              : 0;
        Py_DECREF(row);
        if (is) return is;
    }
    return 0;
}

static PyObject *fit_call(PyObject *self, PyObject *const *tensors, size_t flags, PyObject *Py_UNUSED(names)) {
    int is = fit_tensors((Fit *)self, tensors, PyVectorcall_NARGS(flags));
    return is < 0 ? NULL : PyBool_FromLong(is);
}

static PyObject *fit_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(names)) {
    PyObject *known;
    unsigned long long anywhere = 0;
    if (!PyArg_ParseTuple(args, "O!|K", &PyList_Type, &known, &anywhere)) return NULL;
    Fit *one = (Fit *)type->tp_alloc(type, 0);
    if (!one) return NULL;
    one->base.call = fit_call;
    one->anywhere = anywhere;
    keep(one, 0, known);
    if ((one->base.held[1] = PyList_New(0))) return (PyObject *)one;
    Py_DECREF(one);
    return NULL;
}

/* ---- Changes of dictionaries. From Python 3.12 on a dictionary tells who watches it; before, each has a number that
   grows. */
#if PY_VERSION_HEX >= 0x030C0000
static uint64_t now_changed = 1;
static int watcher = -1;

static int changed(PyDict_WatchEvent Py_UNUSED(event), PyObject *Py_UNUSED(dict), PyObject *Py_UNUSED(key),
                   PyObject *Py_UNUSED(value)) {
    now_changed++;
    return 0;
}

static uint64_t time_of(PyObject *Py_UNUSED(dicts)) { return now_changed; }

static int watch(PyObject *dicts) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(dicts); i++)
        if (PyDict_Watch(watcher, PyList_GET_ITEM(dicts, i))) return -1;
    return 0;
}
#else
static uint64_t time_of(PyObject *dicts) {
    uint64_t sum = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(dicts); i++)
        sum += ((PyDictObject *)PyList_GET_ITEM(dicts, i))->ma_version_tag;
    return sum;
}

static int watch(PyObject *Py_UNUSED(dicts)) { return 0; }
#endif

/* ---- Held: whether all that a guard relies on still is as it was. Called with tuples, whose items must be the very
   objects that were met; those are not kept alive. held: lists of dictionaries that must be empty; of functions (with
   code, defaults, defaults of keywords); of classes (with what they come from, and their own class); of (how to read,
   things, what they read as); of the dictionaries that must not have changed. */
typedef struct {
    Base base;
    uint64_t time;
    int valid; /* whether anything was found to hold at that time */
    Py_ssize_t count;
    void **things;
} Held;

static PyObject *held_now(PyObject *self, PyObject *Py_UNUSED(nothing)) {
    return PyLong_FromUnsignedLongLong(time_of(((Base *)self)->held[4]));
}

/* All held at this time. */
static PyObject *held_at(PyObject *self, PyObject *time) {
    uint64_t number = PyLong_AsUnsignedLongLong(time);
    if (number == (uint64_t)-1 && PyErr_Occurred()) return NULL;
    ((Held *)self)->time = number;
    ((Held *)self)->valid = 1;
    Py_RETURN_NONE;
}

static int same_function(PyObject *row) {
    PyObject *function = PyTuple_GET_ITEM(row, 0), *defaults = PyTuple_GET_ITEM(row, 2);
    if (PyFunction_GET_CODE(function) != PyTuple_GET_ITEM(row, 1)) return 0;
    PyObject *now = PyFunction_GET_DEFAULTS(function), *keywords = PyFunction_GET_KW_DEFAULTS(function);
    if ((now ? now : Py_None) != defaults) return 0;
    PyObject *expected = PyTuple_GET_ITEM(row, 3);
    if (!keywords || expected == Py_None) return !keywords && expected == Py_None;
    return PyObject_RichCompareBool(keywords, expected, Py_EQ);
}

static int same_class(PyObject *row) {
    PyTypeObject *kind = (PyTypeObject *)PyTuple_GET_ITEM(row, 0);
    return kind->tp_mro == PyTuple_GET_ITEM(row, 1) && (PyObject *)Py_TYPE(kind) == PyTuple_GET_ITEM(row, 2);
}

static int reads_the_same(PyObject *row) {
    PyObject *read = PyTuple_GET_ITEM(row, 0), *those = PyTuple_GET_ITEM(row, 1), *expected = PyTuple_GET_ITEM(row, 2);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(those) && i < PyList_GET_SIZE(expected); i++) {
        PyObject *value = PyObject_CallOneArg(read, PyList_GET_ITEM(those, i));
        int is = value ? PyObject_RichCompareBool(value, PyList_GET_ITEM(expected, i), Py_EQ) : -1;
        Py_XDECREF(value);
        if (is <= 0) return is;
    }
    return 1;
}

static int each(PyObject *rows, int (*test)(PyObject *)) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(rows); i++) {
        int is = test(PyList_GET_ITEM(rows, i));
        if (is <= 0) return is;
    }
    return 1;
}

/* Whether no dictionary has changed since all was found to hold. */
static int unchanged(const Held *one) { return one->valid && time_of(one->base.held[4]) == one->time; }

/* What no dictionary tells. */
static int as_ever(Held *one) {
    PyObject **held = one->base.held;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(held[0]); i++)
        if (PyDict_GET_SIZE(PyList_GET_ITEM(held[0], i))) return 0;
    int is = each(held[1], same_function);
    if (is > 0) is = each(held[2], same_class);
    if (is > 0) is = each(held[3], reads_the_same);
    if (is < 0 && (PyErr_ExceptionMatches(PyExc_AttributeError) || PyErr_ExceptionMatches(PyExc_KeyError))) {
        PyErr_Clear();
        is = 0;
    }
    return is;
}

static PyObject *held_call(PyObject *self, PyObject *const *given, size_t flags, PyObject *Py_UNUSED(names)) {
    Held *one = (Held *)self;
    Py_ssize_t at = 0;
    for (Py_ssize_t i = 0; i < PyVectorcall_NARGS(flags); i++) {
        if (!PyTuple_Check(given[i])) Py_RETURN_FALSE;
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(given[i]); k++, at++)
            if (at >= one->count || PyTuple_GET_ITEM(given[i], k) != one->things[at]) Py_RETURN_FALSE;
    }
    int is = at == one->count && unchanged(one) ? as_ever(one) : 0;
    return is < 0 ? NULL : PyBool_FromLong(is);
}

static int rows_of(PyObject *rows, Py_ssize_t width, PyTypeObject *first) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(rows); i++) {
        PyObject *row = PyList_GET_ITEM(rows, i);
        if (!PyTuple_Check(row) || PyTuple_GET_SIZE(row) != width) return 0;
        if (first && !PyObject_TypeCheck(PyTuple_GET_ITEM(row, 0), first)) return 0;
        if (!first && !(PyList_Check(PyTuple_GET_ITEM(row, 1)) && PyList_Check(PyTuple_GET_ITEM(row, 2)))) return 0;
    }
    return 1;
}

static int dicts_only(PyObject *dicts, int exactly) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(dicts); i++) {
        PyObject *one = PyList_GET_ITEM(dicts, i);
        if (exactly ? !PyDict_CheckExact(one) : !PyDict_Check(one)) return 0;
    }
    return 1;
}

static PyObject *held_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(names)) {
    PyObject *things, *lists[5];
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!O!", &PyTuple_Type, &things, &PyList_Type, &lists[0], &PyList_Type,
                          &lists[1], &PyList_Type, &lists[2], &PyList_Type, &lists[3], &PyList_Type, &lists[4]))
        return NULL;
    if (!dicts_only(lists[0], 0) || !rows_of(lists[1], 4, &PyFunction_Type) || !rows_of(lists[2], 3, &PyType_Type) ||
        !rows_of(lists[3], 3, NULL) || !dicts_only(lists[4], 1)) {
        PyErr_SetString(PyExc_TypeError, "what a guard relies on is of another kind");
        return NULL;
    }
    Held *one = (Held *)type->tp_alloc(type, 0);
    if (!one) return NULL;
    one->base.call = held_call;
    one->count = PyTuple_GET_SIZE(things);
    one->things = PyMem_Calloc(one->count + 1, sizeof(void *));
    for (int i = 0; i < 5; i++) keep(one, i, lists[i]);
    if (!one->things || watch(lists[4])) {
        Py_DECREF(one);
        return one->things ? NULL : PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; i < one->count; i++) one->things[i] = PyTuple_GET_ITEM(things, i);
    return (PyObject *)one;
}

static void held_dealloc(PyObject *self) {
    PyObject_GC_UnTrack(self);
    PyMem_Free(((Held *)self)->things);
    dealloc(self);
}

static PyMethodDef held_methods[] = {
    {"now", held_now, METH_NOARGS, "A number that stays the same for as long as no dictionary changes."},
    {"at", held_at, METH_O, "Says that all held when that was the number."},
    {NULL, NULL, 0, NULL},
};
