#define TYPE(name_, size_, new_, dealloc_, methods_)                                                                 \
    {PyVarObject_HEAD_INIT(NULL, 0).tp_name = name_, .tp_basicsize = sizeof(size_), .tp_new = new_,                  \
     .tp_dealloc = dealloc_, .tp_methods = methods_, .tp_call = PyVectorcall_Call,                                   \
     .tp_vectorcall_offset = offsetof(Base, call), .tp_traverse = traverse, .tp_clear = clear,                       \
     .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL}

static PyTypeObject kinds[KINDS] = {
    [ALIKE] = TYPE("Alike", Alike, alike_new, alike_dealloc, NULL),
    [FIT] = TYPE("Fit", Fit, fit_new, dealloc, NULL),
    [HELD_KIND] = TYPE("Held", Held, held_new, held_dealloc, held_methods),
    [KNOWN] = TYPE("Known", Known, known_new, known_dealloc, NULL),
    [ASKED] = TYPE("Asked", Asked, asked_new, dealloc, NULL),
    [GIVEN] = TYPE("Given", Asked, asked_new, dealloc, NULL),
    [LAUNCH] = TYPE("Launch", Launch, launch_new, launch_dealloc, NULL),
    [NOW] = TYPE("Now", Now, now_new, dealloc, NULL),
    [DONE] = TYPE("Done", Done, done_new, dealloc, NULL),
};

static PyMethodDef functions[] = {
    {"begin", begin, METH_VARARGS, "Says what is asked of PyTorch."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "mugraph_native", NULL, -1, functions, NULL, NULL,
                                        NULL, NULL};

PyMODINIT_FUNC PyInit_mugraph_native(void) {
    PyObject *module = PyModule_Create(&definition);
    if (!module) return NULL;
#if PY_VERSION_HEX >= 0x030C0000
    if (watcher < 0 && (watcher = PyDict_AddWatcher(changed)) < 0) goto failed;
#endif
    level = PyUnicode_InternFromString("_current_level");
    flag = PyUnicode_InternFromString("_is_compiling_flag");
    nested = PyUnicode_InternFromString("is_nested");
    calls = PyUnicode_InternFromString("calls");
    run = PyUnicode_InternFromString("run");
    hooks_before = PyUnicode_InternFromString("pre_run_hooks");
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (PyType_Ready(&kinds[i]) || PyModule_AddObjectRef(module, kinds[i].tp_name, (PyObject *)&kinds[i]))
            goto failed;
    if (level && flag && nested && calls && run && hooks_before) return module;
failed:
    Py_DECREF(module);
    return NULL;
}
