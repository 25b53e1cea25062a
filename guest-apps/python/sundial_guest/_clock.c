/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of guest-apps/common for Python: one call into C, so that reading it costs little. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "clock.h"

static PyObject *now_ns(PyObject *module, PyObject *arguments)
{
    (void)module;
    (void)arguments;
    return PyLong_FromUnsignedLongLong(clock_now_ns());
}

static PyObject *select_clock(PyObject *module, PyObject *name)
{
    const char *text = PyUnicode_AsUTF8(name);

    (void)module;
    if (text == NULL)
        return NULL;
    if (clock_select(text) != 0)
        return PyErr_Format(PyExc_ValueError, "clock %s: must be tsc or monotonic", text);
    Py_INCREF(Py_None);
    return Py_None;
}

static PyMethodDef methods[] = {
    {"now_ns", now_ns, METH_NOARGS, "Nanoseconds, of virtual time where the clock is tsc."},
    {"select", select_clock, METH_O, "tsc or monotonic. Raises ValueError for another name."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_clock", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__clock(void);
PyMODINIT_FUNC PyInit__clock(void)
{
    return PyModule_Create(&module);
}
