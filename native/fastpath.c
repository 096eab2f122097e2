/* mphfstore._fastpath: the look-ups of one key as slots of C types, and lists of keys as flat memory. Measured reason: a Python
 * method around a cffi call takes two to three times as long as all of a C extension's `[]`. mphfstore/_plain.py is the same in
 * Python, says what every function does, and serves where this module is not built.
 *
 *     Reader    what a look-up works with: native reader, kind of keys, place of the values. Immutable; keeps their memory
 *     Handle    refers to a Reader until it is closed; Index, Contains and Items add `index`, `in`, `[]` and `get`
 *     join      the keys of a list behind one another
 *
 * Nothing is decided here: whatever is rare (a key that is not exactly bytes, str or int, an error) goes to Python.
 *
 * A look-up keeps the GIL, which costs less than giving it back, and owns its Reader meanwhile: a key may have an __index__ that
 * closes the handle. */
#define PY_SSIZE_T_CLEAN /* the lengths of y# */
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "fastpath.h"
#include "fastpath_keys.h"
#include "native.cdef.h"

#define FAILED INT64_MIN /* in place of an index: an exception is set */

/* --- Reader --- */

typedef struct {
    PyObject_HEAD
    const mphf_reader *reader; /* NULL: `find` is a method of a Python class */
    uint64_t count;     /* keys of the set */
    key_kind kind;      /* owns kind.type */
    PyObject *owner;    /* keeps `reader` and `values` */
    const char *values; /* rows of `width` bytes or, if that is negative, what spans point into; NULL: none */
    Py_ssize_t length, width;
    PyObject *array;    /* the values if a numpy dtype says what they are, else NULL */
    PyObject *unpack;   /* makes a value of where its bytes begin and end if they are compressed, else NULL */
    PyObject *decode;   /* makes a value of its bytes: str, a callable, or NULL where they are the value */
} Reader;

static PyObject *reader_new(PyTypeObject *type, PyObject *arguments, PyObject *Py_UNUSED(names))
{
    unsigned long long reader, values, count;
    PyObject *owner, *kind_type, *array, *unpack = Py_None, *decode = Py_None;
    Py_ssize_t length, width;
    key_kind kind;
    if (!PyArg_ParseTuple(arguments, "KOKOKnnO|OO:Reader", &reader, &owner, &count, &kind_type, &values, &length, &width, &array,
                          &unpack, &decode) ||
        !kind_of(kind_type, &kind))
        return NULL;
    if (values && width > 0 && count > (uint64_t)length / (uint64_t)width) {
        PyErr_SetString(PyExc_ValueError, "fewer values than keys");
        return NULL;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Reader *self = (Reader *)allocate(type, 0);
    if (!self)
        return NULL;
    self->reader = (const mphf_reader *)(uintptr_t)reader;
    self->owner = Py_NewRef(owner);
    self->count = count;
    self->kind = kind;
    Py_INCREF(kind.type);
    self->values = (const char *)(uintptr_t)values;
    self->length = length;
    self->width = width;
    self->array = array == Py_None ? NULL : Py_NewRef(array);
    self->unpack = unpack == Py_None ? NULL : Py_NewRef(unpack);
    self->decode = decode == Py_None ? NULL : Py_NewRef(decode);
    return (PyObject *)self;
}

/* No tp_clear: like a tuple, it cannot be the last link of a cycle, and nobody ever sees it half. */
static int reader_traverse(PyObject *object, visitproc visit, void *arg)
{
    Reader *self = (Reader *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->owner);
    Py_VISIT(self->kind.type);
    Py_VISIT(self->array);
    Py_VISIT(self->unpack);
    Py_VISIT(self->decode);
    return 0;
}

static void reader_dealloc(PyObject *object)
{
    Reader *self = (Reader *)object;
    PyObject_GC_UnTrack(object);
    Py_XDECREF(self->array);
    Py_XDECREF(self->unpack);
    Py_XDECREF(self->decode);
    Py_XDECREF(self->kind.type);
    Py_XDECREF(self->owner);
    deallocate(object);
}

/* Has Python raise the exception for a native status. */
static void fail(Reader *self, int64_t status)
{
    PyObject *result = PyObject_CallMethod((PyObject *)self, "_failed", "i", (int)status);
    if (!result)
        return;
    Py_DECREF(result);
    PyErr_SetString(PyExc_SystemError, "a failure that raised nothing");
}

static int64_t find_in_python(Reader *self, PyObject *key)
{
    PyObject *found = PyObject_CallMethod((PyObject *)self, "find", "(O)", key);
    long long index = found ? PyLong_AsLongLong(found) : ABSENT;
    Py_XDECREF(found);
    return PyErr_Occurred() ? FAILED : index;
}

/* Index of a key, ABSENT or FAILED. */
static int64_t find(Reader *self, PyObject *key)
{
    if (!self->reader)
        return find_in_python(self, key);
    key_bytes bytes;
    if (!bytes_of(&self->kind, key, &bytes)) {
        if (!PyErr_ExceptionMatches(PyExc_OverflowError))
            return FAILED;
        PyErr_Clear(); /* no integer of the dtype: not in the set */
        return ABSENT;
    }
    int64_t index = mphf_find(self->reader, (const uint8_t *)bytes.data, (uint64_t)bytes.length);
    Py_XDECREF(bytes.held);
    if (index >= ABSENT)
        return index;
    fail(self, index);
    return FAILED;
}

static bool has_reader(Reader *self)
{
    if (!self->reader)
        PyErr_SetString(PyExc_NotImplementedError, "without a native reader");
    return self->reader != NULL;
}

static PyObject *reader_find(PyObject *self, PyObject *key)
{
    if (!has_reader((Reader *)self))
        return NULL;
    int64_t index = find((Reader *)self, key);
    return index == FAILED ? NULL : PyLong_FromLongLong(index);
}

static PyObject *reader_index(PyObject *object, PyObject *key)
{
    Reader *self = (Reader *)object;
    key_bytes bytes;
    if (!has_reader(self) || !bytes_of(&self->kind, key, &bytes))
        return NULL;
    int64_t index = self->count ? mphf_index(self->reader, (const uint8_t *)bytes.data, (uint64_t)bytes.length) : ABSENT;
    Py_XDECREF(bytes.held);
    if (index >= 0)
        return PyLong_FromLongLong(index);
    if (self->count)
        fail(self, index);
    else
        PyErr_SetString(PyExc_ValueError, "a function of no keys has no index to give");
    return NULL;
}

/* The value whose bytes these are. */
static PyObject *value_of(Reader *self, const char *data, Py_ssize_t length)
{
    if (!self->decode)
        return PyBytes_FromStringAndSize(data, length);
    if (self->decode != (PyObject *)&PyUnicode_Type)
        return PyObject_CallFunction(self->decode, "y#", data, length);
    PyObject *text = PyUnicode_DecodeUTF8(data, length, NULL);
    if (!text && PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) {
        PyErr_Clear();
        fail(self, STATUS_CORRUPT);
    }
    return text;
}

/* index: one of the set's. */
static PyObject *value(Reader *self, int64_t index)
{
    if (self->array)
        return PySequence_GetItem(self->array, (Py_ssize_t)index);
    if (!self->values) {
        PyErr_SetString(PyExc_TypeError, "this store has no values; use `in`");
        return NULL;
    }
    if (self->width >= 0)
        return value_of(self, self->values + index * self->width, self->width);
    value_span span = mphf_span(self->reader, (uint64_t)index);
    if (span.begin < 0 || span.end > self->length) {
        fail(self, STATUS_CORRUPT);
        return NULL;
    }
    if (self->unpack)
        return PyObject_CallFunction(self->unpack, "LL", (long long)span.begin, (long long)span.end);
    return value_of(self, self->values + span.begin, (Py_ssize_t)(span.end - span.begin));
}

static PyObject *reader_value_list(PyObject *object, PyObject *arguments)
{
    Reader *self = (Reader *)object;
    unsigned long long address;
    Py_ssize_t count;
    PyObject *absent;
    if (!PyArg_ParseTuple(arguments, "KnO:value_list", &address, &count, &absent))
        return NULL;
    const int64_t *indices = (const int64_t *)(uintptr_t)address;
    PyObject *list = PyList_New(count);
    for (Py_ssize_t i = 0; list && i < count; i++) {
        if (self->width > 0 && self->values && i + AHEAD < count && (uint64_t)indices[i + AHEAD] < self->count)
            __builtin_prefetch(self->values + indices[i + AHEAD] * self->width);
        PyObject *item = (uint64_t)indices[i] < self->count ? value(self, indices[i]) : Py_NewRef(absent);
        if (!item || PyList_SetItem(list, i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyMethodDef reader_methods[] = {
    {"find", reader_find, METH_O, NULL},
    {"index", reader_index, METH_O, NULL},
    {"value_list", reader_value_list, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot reader_slots[] = {
    {Py_tp_new, reader_new},
    {Py_tp_dealloc, reader_dealloc},
    {Py_tp_traverse, reader_traverse},
    {Py_tp_methods, reader_methods},
    {0, NULL},
};

static PyType_Spec reader_spec = {
    "mphfstore._fastpath.Reader", sizeof(Reader), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    reader_slots,
};

/* --- Handle --- */

typedef struct {
    PyObject_HEAD
    Reader *opened; /* NULL: closed */
} Handle;

typedef struct {
    PyTypeObject *reader;
} module_state;

/* A new reference. NULL: closed, an exception is set. */
static inline Reader *current(PyObject *self)
{
    Reader *opened = ((Handle *)self)->opened;
    if (opened)
        Py_INCREF(opened);
    else
        PyErr_SetString(PyExc_ValueError, "this handle is closed");
    return opened;
}

static PyObject *handle_current(PyObject *self, PyObject *Py_UNUSED(none)) { return (PyObject *)current(self); }

static PyObject *handle_opened(PyObject *self, void *Py_UNUSED(closure))
{
    PyObject *opened = (PyObject *)((Handle *)self)->opened;
    return Py_NewRef(opened ? opened : Py_None);
}

static PyObject *handle_attach(PyObject *object, PyTypeObject *type, PyObject *const *arguments, size_t count, PyObject *names)
{
    const module_state *state = PyType_GetModuleState(type);
    if (count != 1 || names || !PyObject_TypeCheck(arguments[0], state->reader)) {
        PyErr_SetString(PyExc_TypeError, "_attach takes a Reader");
        return NULL;
    }
    Reader *before = ((Handle *)object)->opened;
    ((Handle *)object)->opened = (Reader *)Py_NewRef(arguments[0]);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

static int handle_clear(PyObject *self)
{
    Py_CLEAR(((Handle *)self)->opened);
    return 0;
}

static PyObject *handle_close(PyObject *self, PyObject *Py_UNUSED(none))
{
    handle_clear(self);
    Py_RETURN_NONE;
}

static int handle_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((Handle *)self)->opened);
    return 0;
}

static void handle_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    handle_clear(self);
    deallocate(self);
}

/* Up to two arguments by position or name; the first is required, the second stays as it is if not given. */
static bool arguments_of(const char *function, const char *const names[2], PyObject *const *arguments, Py_ssize_t count,
                         PyObject *keywords, PyObject *into[2])
{
    Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0, most = names[1] ? 2 : 1;
    if (count + named < 1 || count + named > most) {
        PyErr_Format(PyExc_TypeError, "%s() takes 1 to %zd arguments, not %zd", function, most, count + named);
        return false;
    }
    PyObject *given[2] = {NULL, NULL};
    for (Py_ssize_t i = 0; i < count; i++)
        given[i] = arguments[i];
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *name = PyTuple_GetItem(keywords, i);
        Py_ssize_t position = 0;
        while (position < most && PyUnicode_CompareWithASCIIString(name, names[position]) != 0)
            position++;
        if (position == most || given[position]) {
            PyErr_Format(PyExc_TypeError, "%s() got an unexpected argument '%U'", function, name);
            return false;
        }
        given[position] = arguments[count + i];
    }
    if (!given[0]) {
        PyErr_Format(PyExc_TypeError, "%s() missing argument '%s'", function, names[0]);
        return false;
    }
    into[0] = given[0];
    if (given[1])
        into[1] = given[1];
    return true;
}

static PyObject *index_index(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *keywords)
{
    static const char *const names[2] = {"key", NULL};
    PyObject *given[2] = {NULL, NULL};
    if (!arguments_of("index", names, arguments, count, keywords, given))
        return NULL;
    Reader *opened = current(self);
    if (!opened)
        return NULL;
    PyObject *index = reader_index((PyObject *)opened, given[0]);
    Py_DECREF(opened);
    return index;
}

static int contains_contains(PyObject *self, PyObject *key)
{
    Reader *opened = current(self);
    if (!opened)
        return -1;
    int64_t index = find(opened, key);
    Py_DECREF(opened);
    return index == FAILED ? -1 : index >= 0;
}

static void raise_absent(PyObject *key)
{
    if (PyBytes_CheckExact(key) || PyUnicode_CheckExact(key) || PyLong_CheckExact(key)) {
        PyErr_SetObject(PyExc_KeyError, key);
        return;
    }
    PyObject *error = PyObject_CallFunctionObjArgs(PyExc_KeyError, key, NULL); /* a tuple would be taken for its arguments */
    if (error)
        PyErr_SetObject(PyExc_KeyError, error);
    Py_XDECREF(error);
}

/* absent: what an absent key has; NULL: a KeyError. */
static PyObject *value_or(PyObject *self, PyObject *key, PyObject *absent)
{
    Reader *opened = current(self);
    if (!opened)
        return NULL;
    PyObject *result = NULL;
    int64_t index = find(opened, key);
    if (index >= 0)
        result = value(opened, index);
    else if (index == ABSENT && absent)
        result = Py_NewRef(absent);
    else if (index == ABSENT)
        raise_absent(key);
    Py_DECREF(opened);
    return result;
}

static PyObject *items_subscript(PyObject *self, PyObject *key) { return value_or(self, key, NULL); }

static PyObject *items_get(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *keywords)
{
    static const char *const names[2] = {"key", "default"};
    PyObject *given[2] = {NULL, Py_None};
    return arguments_of("get", names, arguments, count, keywords, given) ? value_or(self, given[0], given[1]) : NULL;
}

#define METHOD(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef handle_methods[] = {
    {"_current", handle_current, METH_NOARGS, NULL},
    {"_attach", METHOD(handle_attach), METH_METHOD | METH_FASTCALL | METH_KEYWORDS, NULL},
    {"close", handle_close, METH_NOARGS,
     "close($self, /)\n--\n\n"
     "Gives the mapping back once no look-up or view uses it any more. Look-ups afterwards raise ValueError."},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef index_methods[] = {
    {"index", METHOD(index_index), METH_FASTCALL | METH_KEYWORDS,
     "index($self, /, key)\n--\n\n"
     "Index of a key of the set; some value below n for any other. Raises ValueError for n = 0, TypeError, OverflowError."},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef items_methods[] = {
    {"get", METHOD(items_get), METH_FASTCALL | METH_KEYWORDS,
     "get($self, /, key, default=None)\n--\n\n"
     "The key's value, or `default` if it is absent."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef handle_attributes[] = {
    {"_opened", handle_opened, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot handle_slots[] = {
    {Py_tp_dealloc, handle_dealloc},
    {Py_tp_traverse, handle_traverse},
    {Py_tp_clear, handle_clear},
    {Py_tp_methods, handle_methods},
    {Py_tp_getset, handle_attributes},
    {0, NULL},
};
static PyType_Slot index_slots[] = {{Py_tp_methods, index_methods}, {0, NULL}};
static PyType_Slot contains_slots[] = {{Py_sq_contains, contains_contains}, {0, NULL}};
static PyType_Slot items_slots[] = {{Py_mp_subscript, items_subscript}, {Py_tp_methods, items_methods}, {0, NULL}};

#define SUBTYPE Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE /* of Handle, whose traverse and clear it has */
static PyType_Spec handle_spec = {
    "mphfstore._fastpath.Handle", sizeof(Handle), 0, SUBTYPE | Py_TPFLAGS_HAVE_GC, handle_slots,
};
static PyType_Spec index_spec = {"mphfstore._fastpath.Index", sizeof(Handle), 0, SUBTYPE, index_slots};
static PyType_Spec contains_spec = {"mphfstore._fastpath.Contains", sizeof(Handle), 0, SUBTYPE, contains_slots};
static PyType_Spec items_spec = {"mphfstore._fastpath.Items", sizeof(Handle), 0, SUBTYPE, items_slots};

/* --- module --- */

static PyMethodDef functions[] = {{"join", join, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};

/* A borrowed reference that the module keeps; NULL: an exception is set. */
static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec, PyTypeObject *base)
{
    PyObject *bases = base ? PyTuple_Pack(1, base) : NULL;
    PyObject *type = base && !bases ? NULL : PyType_FromModuleAndSpec(module, spec, bases);
    Py_XDECREF(bases);
    if (type && PyModule_AddType(module, (PyTypeObject *)type) < 0)
        Py_CLEAR(type);
    Py_XDECREF(type);
    return (PyTypeObject *)type;
}

static int add_look_up(PyObject *module)
{
    static look_up functions = {value_or};
    PyObject *capsule = PyCapsule_New(&functions, LOOK_UP_CAPSULE, NULL);
    int status = capsule ? PyModule_AddObjectRef(module, "_look_up", capsule) : -1;
    Py_XDECREF(capsule);
    return status;
}

static int execute(PyObject *module)
{
    module_state *state = PyModule_GetState(module);
    PyTypeObject *reader = add_type(module, &reader_spec, NULL), *handle, *contains;
    if (!reader)
        return -1;
    Py_INCREF(reader);
    state->reader = reader;
    handle = add_type(module, &handle_spec, NULL);
    contains = handle ? add_type(module, &contains_spec, handle) : NULL;
    return contains && add_type(module, &index_spec, handle) && add_type(module, &items_spec, contains) ? add_look_up(module) : -1;
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    Py_VISIT(((module_state *)PyModule_GetState(module))->reader);
    return 0;
}

static int module_clear(PyObject *module)
{
    Py_CLEAR(((module_state *)PyModule_GetState(module))->reader);
    return 0;
}

static void module_free(void *module) { module_clear(module); }

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, execute}, {0, NULL}};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "mphfstore._fastpath",
    .m_size = sizeof(module_state),
    .m_methods = functions,
    .m_slots = module_slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit__fastpath(void); /* PyMODINIT_FUNC alone is no prototype */
PyMODINIT_FUNC PyInit__fastpath(void) { return PyModuleDef_Init(&definition); }
