/* Guards and launches without Python in between. Whatever these say no to, or cannot do, is asked or done again in
   Python, by the functions that this file shortens: a "no" here costs time, never a result. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>

#define HELD 10       /* objects that one of ours refers to */
#define MOST 64       /* tensors of a launch, and arguments of a kernel */

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

/* What is asked of PyTorch; `begin` says how. */
static PyObject *address_of;    /* Tensor.data_ptr */
static PyObject *questions;     /* a tuple of callables: where each answers 0 or False, nothing watches or rewrites */
static PyObject *with_grad;     /* torch.is_grad_enabled */
static PyObject *parameter;     /* the class torch.nn.Parameter */
static PyObject *forward_ad;    /* the names of torch.autograd.forward_ad */
static PyObject *level, *nested, *calls, *run, *hooks_before; /* names of attributes */

static PyObject *begin(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *one, *two, *three, *four, *five;
    if (!PyArg_ParseTuple(args, "OO!OO!O", &one, &PyTuple_Type, &two, &three, &PyDict_Type, &four, &five)) return NULL;
    Py_XSETREF(address_of, Py_NewRef(one));
    Py_XSETREF(questions, Py_NewRef(two));
    Py_XSETREF(with_grad, Py_NewRef(three));
    Py_XSETREF(forward_ad, Py_NewRef(four));
    Py_XSETREF(parameter, Py_NewRef(five));
    Py_RETURN_NONE;
}

/* 1 for an answer that is true, 0 for one that is not, -1 with an exception set. Takes the reference. */
static int truth(PyObject *answer) {
    if (!answer) return -1;
    int is = PyObject_IsTrue(answer);
    Py_DECREF(answer);
    return is;
}

static int address(PyObject *tensor, uint64_t *place) {
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
