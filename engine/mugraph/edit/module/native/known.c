/* ---- Known: a region's answer for objects of the user's that it has been asked of before (`self`), as long as no
   dictionary changes that leads from them to modules and parameters: then these are what they were, and need not be
   looked for. held: a Held of all those dictionaries; a Fit. Modules and parameters are not kept alive: they are what
   unchanged dictionaries hold. */
typedef struct {
    Base base;
    int roots, objects, tensors;
    struct { int at; void *thing; } *root;              /* of the arguments */
    struct { void *thing; void *kind; } *object;        /* whose class must be what it was */
    struct { int at; PyObject *thing; } *tensor;        /* of the arguments, or a parameter (-1) */
} Known;

/* The tensors, where the arguments are those that it was asked of, and no dictionary has changed. */
static int gathered(const Known *one, PyObject *const *given, Py_ssize_t count, PyObject **tensors) {
    for (int i = 0; i < one->roots; i++)
        if (one->root[i].at >= count || given[one->root[i].at] != one->root[i].thing) return 0;
    if (!unchanged((Held *)one->base.held[0])) return 0;
    for (int i = 0; i < one->tensors; i++) {
        if (one->tensor[i].at >= count) return 0;
        tensors[i] = one->tensor[i].at < 0 ? one->tensor[i].thing : given[one->tensor[i].at];
    }
    return 1;
}

static int known_holds(Known *one, PyObject *const *given, Py_ssize_t count) {
    PyObject *tensors[REGION];
    if (!gathered(one, given, count, tensors)) return 0;
    for (int i = 0; i < one->objects; i++)
        if ((void *)Py_TYPE((PyObject *)one->object[i].thing) != one->object[i].kind) return 0;
    int is = as_ever((Held *)one->base.held[0]);
    if (is > 0) is = fit_tensors((Fit *)one->base.held[1], tensors, one->tensors);
    if (is < 0 && PyErr_ExceptionMatches(PyExc_Exception)) { /* a tensor of another kind: Python says what then */
        PyErr_Clear();
        is = 0;
    }
    return is;
}

static PyObject *known_call(PyObject *self, PyObject *const *given, size_t flags, PyObject *Py_UNUSED(names)) {
    int is = known_holds((Known *)self, given, PyVectorcall_NARGS(flags));
    return is < 0 ? NULL : PyBool_FromLong(is);
}

static int pair_of(PyObject *row, int *at, PyObject **thing) {
    if (PyTuple_Check(row)) return PyArg_ParseTuple(row, "iO", at, thing) ? 0 : -1;
    PyErr_SetString(PyExc_TypeError, "an argument and what it is are a tuple");
    return -1;
}

/* Known(held, fit, roots, objects, tensors): roots of (which argument, what it must be), objects, tensors of (which
   argument or -1, the parameter or None). */
static PyObject *known_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(names)) {
    PyObject *held, *fit, *roots, *objects, *tensors;
    if (!PyArg_ParseTuple(args, "OOO!O!O!", &held, &fit, &PyTuple_Type, &roots, &PyTuple_Type, &objects, &PyTuple_Type,
                          &tensors))
        return NULL;
    if (!is_a(held, HELD_KIND) || !is_a(fit, FIT) ||
        PyTuple_GET_SIZE(tensors) > REGION)
        return PyErr_Format(PyExc_TypeError, "what a region relies on is of another kind");
    Known *one = (Known *)type->tp_alloc(type, 0);
    if (!one) return NULL;
    one->base.call = known_call;
    keep(one, 0, held);
    keep(one, 1, fit);
    one->root = PyMem_Calloc(PyTuple_GET_SIZE(roots) + 1, sizeof(*one->root));
    one->object = PyMem_Calloc(PyTuple_GET_SIZE(objects) + 1, sizeof(*one->object));
    one->tensor = PyMem_Calloc(PyTuple_GET_SIZE(tensors) + 1, sizeof(*one->tensor));
    if (!one->root || !one->object || !one->tensor) goto failed;
    for (; one->roots < PyTuple_GET_SIZE(roots); one->roots++) {
        PyObject *thing;
        if (pair_of(PyTuple_GET_ITEM(roots, one->roots), &one->root[one->roots].at, &thing)) goto failed;
        one->root[one->roots].thing = thing;
    }
    for (; one->objects < PyTuple_GET_SIZE(objects); one->objects++) {
        one->object[one->objects].thing = PyTuple_GET_ITEM(objects, one->objects);
        one->object[one->objects].kind = Py_TYPE(PyTuple_GET_ITEM(objects, one->objects));
    }
    for (; one->tensors < PyTuple_GET_SIZE(tensors); one->tensors++) {
        PyObject *thing;
        int at;
        if (pair_of(PyTuple_GET_ITEM(tensors, one->tensors), &at, &thing)) goto failed;
        one->tensor[one->tensors].at = at;
        one->tensor[one->tensors].thing = thing;
    }
    return (PyObject *)one;
failed:
    Py_DECREF(one);
    return PyErr_Occurred() ? NULL : PyErr_NoMemory();
}

static void known_dealloc(PyObject *self) {
    Known *one = (Known *)self;
    PyObject_GC_UnTrack(self);
    PyMem_Free(one->root);
    PyMem_Free(one->object);
    PyMem_Free(one->tensor);
    dealloc(self);
}

/* ---- Asked: finds the Known of an argument among many. held: a dictionary of them by the argument's number. */
typedef struct {
    Base base;
    Py_ssize_t at;
} Asked;

/* A reference to what is known of an argument; NULL, perhaps with an exception, where nothing is. */
static Known *known_of(PyObject *known, Py_ssize_t at, PyObject *const *given, Py_ssize_t count) {
    PyObject *number = at < count ? PyLong_FromVoidPtr(given[at]) : NULL;
    PyObject *one = number ? PyDict_GetItemWithError(known, number) : NULL;
    Py_XDECREF(number);
    return one && is_a(one, KNOWN) ? (Known *)Py_NewRef(one) : NULL;
}

static PyObject *asked_call(PyObject *self, PyObject *const *given, size_t flags, PyObject *Py_UNUSED(names)) {
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    Known *one = known_of(((Base *)self)->held[0], ((Asked *)self)->at, given, count);
    int is = one ? known_holds(one, given, count) : PyErr_Occurred() ? -1 : 0;
    Py_XDECREF(one);
    return is < 0 ? NULL : PyBool_FromLong(is);
}

/* The tensors of a region, where nothing has changed that leads to them; None where Python is to look for them. */
static PyObject *given_call(PyObject *self, PyObject *const *given, size_t flags, PyObject *Py_UNUSED(names)) {
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    PyObject *tensors[REGION], *all = NULL;
    Known *one = known_of(((Base *)self)->held[0], ((Asked *)self)->at, given, count);
    if (one && gathered(one, given, count, tensors) && (all = PyTuple_New(one->tensors)))
        for (int i = 0; i < one->tensors; i++) PyTuple_SET_ITEM(all, i, Py_NewRef(tensors[i]));
    Py_XDECREF(one);
    if (all) return all;
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

/* Asked(known, which argument), Given(known, which argument) */
static PyObject *asked_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(names)) {
    PyObject *known;
    Py_ssize_t at;
    if (!PyArg_ParseTuple(args, "O!n", &PyDict_Type, &known, &at)) return NULL;
    if (at < 0) return PyErr_Format(PyExc_ValueError, "no argument");
    Asked *one = (Asked *)type->tp_alloc(type, 0);
    if (!one) return NULL;
    one->base.call = type == &kinds[GIVEN] ? given_call : asked_call;
    one->at = at;
    keep(one, 0, known);
    return (PyObject *)one;
}
