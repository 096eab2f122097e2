/* Keys as native code takes them, one or a list of them: part of native/fastpath.c. */
#ifndef MPHF_FASTPATH_KEYS_H
#define MPHF_FASTPATH_KEYS_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#define AHEAD 16 /* objects of a list, or values, that are on their way into the cache */

typedef struct {
    PyObject *type;          /* the Python object whose `one` makes bytes of any key, or says what is wrong with it */
    int size;                /* of an integer in bytes; 0: keys are byte strings */
    bool is_signed, is_text; /* is_text: `str` is a key, too */
} key_kind;

typedef struct {
    char *data; /* read only */
    Py_ssize_t length;
    uint64_t word;  /* what `data` points to if the key is an integer */
    PyObject *held; /* what it points into if `one` made it, else NULL */
} key_bytes;

static bool attribute(PyObject *object, const char *name, int *value)
{
    PyObject *found = PyObject_GetAttrString(object, name);
    *value = found ? (int)PyLong_AsLong(found) : -1;
    Py_XDECREF(found);
    return !PyErr_Occurred();
}

/* Borrows `type`. */
static bool kind_of(PyObject *type, key_kind *kind)
{
    int is_signed, is_text;
    if (!attribute(type, "size", &kind->size) || !attribute(type, "signed", &is_signed) || !attribute(type, "text", &is_text))
        return false;
    if (kind->size != 0 && kind->size != 1 && kind->size != 2 && kind->size != 4 && kind->size != 8) {
        PyErr_Format(PyExc_ValueError, "integer keys of %d bytes", kind->size);
        return false;
    }
    *kind = (key_kind){type, kind->size, is_signed != 0, is_text != 0};
    return true;
}

/* Whether `key`, an int, is one of the kind: if so, *word begins with its bytes. Sets no exception. */
static bool integer_fits(const key_kind *kind, PyObject *key, uint64_t *word)
{
    int overflow, bits = 8 * kind->size;
    long long value = PyLong_AsLongLongAndOverflow(key, &overflow);
    *word = (uint64_t)value;
    if (kind->is_signed)
        return !overflow && (bits == 64 || (value >= -(1ll << (bits - 1)) && value < 1ll << (bits - 1)));
    if (overflow > 0 && bits == 64) {
        *word = PyLong_AsUnsignedLongLong(key);
        if (!PyErr_Occurred())
            return true;
        PyErr_Clear();
        return false;
    }
    return !overflow && value >= 0 && (bits == 64 || value < 1ll << bits);
}

static bool convert(const key_kind *kind, PyObject *key, key_bytes *bytes)
{
    Py_INCREF(key); /* a list may lose it meanwhile */
    bytes->held = PyObject_CallMethod(kind->type, "one", "(O)", key);
    Py_DECREF(key);
    if (bytes->held && PyBytes_AsStringAndSize(bytes->held, &bytes->data, &bytes->length) == 0)
        return true;
    Py_CLEAR(bytes->held);
    return false;
}

/* The bytes of a key, valid while `key` lives and until bytes->held is released. False: an exception is set. */
static inline bool bytes_of(const key_kind *kind, PyObject *key, key_bytes *bytes)
{
    bytes->held = NULL;
    if (kind->size) {
        if (PyLong_CheckExact(key) && integer_fits(kind, key, &bytes->word)) {
            bytes->data = (char *)&bytes->word;
            bytes->length = kind->size;
            return true;
        }
    } else if (PyBytes_CheckExact(key)) {
        return PyBytes_AsStringAndSize(key, &bytes->data, &bytes->length) == 0;
    } else if (kind->is_text && PyUnicode_CheckExact(key)) {
        bytes->data = (char *)PyUnicode_AsUTF8AndSize(key, &bytes->length);
        return bytes->data != NULL;
    }
    return convert(kind, key, bytes);
}

/* --- lists --- */

/* Grows `array`, whose first `size` bytes are in use, so that `more` fit. */
static bool reserve(PyObject *array, Py_ssize_t size, Py_ssize_t more, Py_ssize_t *capacity)
{
    if (more <= *capacity - size)
        return true;
    if (more > PY_SSIZE_T_MAX / 2 - size) {
        PyErr_NoMemory();
        return false;
    }
    *capacity = (size + more) + (size + more) / 2;
    return PyByteArray_Resize(array, *capacity) == 0;
}

/* The keys of `list` behind one another in `data`; where each begins, and the last ends, in `offsets` if that is not NULL. */
static bool join_into(PyObject *list, Py_ssize_t count, const key_kind *kind, PyObject *data, uint64_t *offsets)
{
    Py_ssize_t size = 0, capacity = PyByteArray_Size(data);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (i + AHEAD < count) { /* shuffled keys lie all over the memory */
            uintptr_t later = (uintptr_t)PyList_GetItem(list, i + AHEAD);
            __builtin_prefetch((const void *)later);
            __builtin_prefetch((const void *)(later + 48)); /* the end of a short key */
        }
        key_bytes bytes;
        PyObject *key = PyList_GetItem(list, i); /* checks the bounds: `one` may do anything to the list */
        if (!key || !bytes_of(kind, key, &bytes))
            return false;
        bool fits = reserve(data, size, bytes.length, &capacity);
        if (fits) {
            memcpy(PyByteArray_AsString(data) + size, bytes.data, (size_t)bytes.length);
        }
        Py_XDECREF(bytes.held);
        if (!fits)
            return false;
        if (offsets)
            offsets[i] = (uint64_t)size;
        size += bytes.length;
    }
    if (offsets)
        offsets[count] = (uint64_t)size;
    return PyByteArray_Resize(data, size) == 0;
}

static PyObject *join(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *list, *type, *offsets = NULL, *result = NULL;
    key_kind kind;
    if (!PyArg_ParseTuple(arguments, "O!O:join", &PyList_Type, &list, &type) || !kind_of(type, &kind))
        return NULL;
    Py_ssize_t count = PyList_Size(list);
    PyObject *data = PyByteArray_FromStringAndSize(NULL, count * (kind.size ? kind.size : 16));
    if (data && !kind.size)
        offsets = PyByteArray_FromStringAndSize(NULL, (count + 1) * (Py_ssize_t)sizeof(uint64_t));
    if (data && (kind.size || offsets) &&
        join_into(list, count, &kind, data, offsets ? (uint64_t *)(void *)PyByteArray_AsString(offsets) : NULL))
        result = PyTuple_Pack(2, data, offsets ? offsets : Py_None);
    Py_XDECREF(data);
    Py_XDECREF(offsets);
    return result;
}

#endif
