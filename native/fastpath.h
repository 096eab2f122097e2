/* What native/fastpath.c and native/layered.c share, and what the latter calls in the former by a capsule. */
#ifndef MPHF_FASTPATH_H
#define MPHF_FASTPATH_H

#include <Python.h>

#define LOOK_UP_CAPSULE "mphfstore._fastpath._look_up"

typedef struct {
    /* The value of a key in a handle of type Items. absent: what an absent key has; NULL: a KeyError. */
    PyObject *(*value_or)(PyObject *handle, PyObject *key, PyObject *absent);
} look_up;

/* The end of an object of a heap type. */
static inline void deallocate(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

#endif
