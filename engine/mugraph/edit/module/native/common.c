/* Guards and launches without Python in between. Whatever these say no to, or cannot do, is asked or done again in
   Python, by the functions that this file shortens: a "no" here costs time, never a result. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HELD 10       /* objects that one of ours refers to */
#define MOST 64       /* tensors of a launch, and arguments of a kernel */
#define REGION 2048   /* tensors of a region: a network has some for each layer */

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *held[HELD];
} Base;

static int traverse(PyObject *self, visitproc visit, void *arg) {
    for (int i = 0; i < HELD; i++) Py_VISIT(((Base *)self)->held[i]);
    return 0;
}

static int clear(PyObject *self) {
    for (int i = 0; i < HELD; i++) Py_CLEAR(((Base *)self)->held[i]);
    return 0;
}

static void keep(void *self, int at, PyObject *thing) {
    ((Base *)self)->held[at] = Py_NewRef(thing);
}

/* Of what has nothing but what it holds. */
static void dealloc(PyObject *self) {
    PyObject_GC_UnTrack(self);
    clear(self);
    Py_TYPE(self)->tp_free(self);
}

enum { ALIKE, FIT, HELD_KIND, KNOWN, ASKED, GIVEN, LAUNCH, NOW, DONE, KINDS };
static PyTypeObject kinds[KINDS];

static int is_a(PyObject *one, int kind) { return Py_TYPE(one) == &kinds[kind]; }

/* What is asked of PyTorch; `begin` says how. */
static PyObject *address_of;    /* Tensor.data_ptr */
static PyObject *questions;     /* a tuple of callables: where each answers 0 or False, nothing watches or rewrites */
static PyObject *modes;         /* how many modes of dispatch there are, which see what PyTorch's functions call */
static PyObject *compiler;      /* the names of torch.compiler */
static PyObject *with_grad;     /* torch.is_grad_enabled */
static PyObject *tensor_kind;   /* the class torch.Tensor */
static PyObject *parameter;     /* the class torch.nn.Parameter */
static PyObject *forward_ad;    /* the names of torch.autograd.forward_ad */
static PyObject *level, *flag, *nested, *calls, *run, *hooks_before; /* names of attributes */

/* Tensors are read by functions of PyTorch's with a stable interface in C (aoti_torch/c/shim.h), which take the address
   of the pointer that a Python tensor keeps to what it is. Where that pointer is, and where the set of dispatch keys is
   behind it, has been found out (`_inside_tensors`); 0: it could not be. */
typedef int (*reader)(void *, void *);
static Py_ssize_t handle_at, keys_at;
static reader read_address, read_dtype, read_device, read_dim, read_sizes, read_strides;

static PyObject *begin(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *one, *two, *three, *four, *five, *six, *seven, *eight;
    unsigned long long of[6];
    Py_ssize_t handle, keys;
    if (!PyArg_ParseTuple(args, "OO!OOO!O!OO(nnKKKKKK)", &one, &PyTuple_Type, &two, &three, &four, &PyDict_Type, &five,
                          &PyDict_Type, &eight, &six, &seven, &handle, &keys, &of[0], &of[1], &of[2], &of[3], &of[4],
                          &of[5]))
        return NULL;
    Py_XSETREF(address_of, Py_NewRef(one));
    Py_XSETREF(questions, Py_NewRef(two));
    Py_XSETREF(modes, Py_NewRef(three));
    Py_XSETREF(with_grad, Py_NewRef(four));
    Py_XSETREF(forward_ad, Py_NewRef(five));
    Py_XSETREF(compiler, Py_NewRef(eight));
    Py_XSETREF(tensor_kind, Py_NewRef(six));
    Py_XSETREF(parameter, Py_NewRef(seven));
    handle_at = handle;
    keys_at = keys;
    read_address = (reader)(uintptr_t)of[0];
    read_dtype = (reader)(uintptr_t)of[1];
    read_device = (reader)(uintptr_t)of[2];
    read_dim = (reader)(uintptr_t)of[3];
    read_sizes = (reader)(uintptr_t)of[4];
    read_strides = (reader)(uintptr_t)of[5];
    Py_RETURN_NONE;
}

/* What PyTorch's functions in C take for a tensor of one of its two own classes; NULL where they cannot be asked. */
static void *handle_of(PyObject *tensor) {
    PyObject *kind = (PyObject *)Py_TYPE(tensor);
    if (!handle_at || (kind != tensor_kind && kind != parameter)) return NULL;
    void **handle = (void **)((char *)tensor + handle_at);
    return *handle ? handle : NULL;
}

static uint64_t keys_of(void *handle) { return *(uint64_t *)(*(char **)handle + keys_at); }

/* 1 for an answer that is true, 0 for one that is not, -1 with an exception set. Takes the reference. */
static int truth(PyObject *answer) {
    if (!answer) return -1;
    int is = PyObject_IsTrue(answer);
    Py_DECREF(answer);
    return is;
}

static int address(PyObject *tensor, uint64_t *place) {
    void *handle = handle_of(tensor), *memory;
    if (handle && !read_address(handle, &memory)) {
        *place = (uint64_t)(uintptr_t)memory;
        return 0;
    }
    PyObject *number = PyObject_CallOneArg(address_of, tensor);
    if (!number) return -1;
    *place = PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    return *place == (uint64_t)-1 && PyErr_Occurred() ? -1 : 0;
}

/* Whether nothing watches PyTorch's functions, or computes something else in their place. */
static int undisturbed(void) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(questions); i++) {
        int is = truth(PyObject_CallNoArgs(PyTuple_GET_ITEM(questions, i)));
        if (is) return is < 0 ? -1 : 0;
    }
    PyObject *deep = PyDict_GetItemWithError(forward_ad, level);
    if (!deep) return PyErr_Occurred() ? -1 : 0;
    long number = PyLong_AsLong(deep);
    return number == -1 && PyErr_Occurred() ? -1 : number < 0;
}

/* Whether nothing traces launches. */
static int untraced(void) {
    PyObject *compiling = PyDict_GetItemWithError(compiler, flag);
    if (!compiling) return PyErr_Occurred() ? -1 : 0;
    if (compiling != Py_False) return 0;
    int is = truth(PyObject_CallNoArgs(modes));
    return is < 0 ? -1 : !is;
}
