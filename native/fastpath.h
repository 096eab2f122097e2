/* What native/layered.c calls in native/fastpath.c, by a capsule of mphfstore._fastpath. */
#ifndef MPHF_FASTPATH_H
#define MPHF_FASTPATH_H

#include <Python.h>

#define LOOK_UP_CAPSULE "mphfstore._fastpath._look_up"

typedef struct {
    /* The value of a key in a handle of type Items. absent: what an absent key has; NULL: a KeyError. */
    PyObject *(*value_or)(PyObject *handle, PyObject *key, PyObject *absent);
} look_up;

#endif
