/* mphfstore._layered: look-ups in a mapping that lies over another one, most of whose keys it leaves as they are. Measured
 * reason: a Python method in front of Store's `[]` costs more than the look-up itself. mphfstore/_layered_plain.py is the same
 * in Python and serves where this module is not built.
 *
 *     Keyset    32 bits of a hash of every key that may have changed: never wrong about one that has
 *     Layered   `[]`, `get` and `in`: asks the base for what Keyset does not have, Python for all else
 *
 * Nothing is decided here: a key that is not exactly bytes, str or int, or that may have changed, goes to Python. */
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "fastpath.h"
#include "native.cdef.h"

/* --- Keyset --- */

/* Open addressing at most half full; 0 is an empty slot, which no hash is. A slot's index is the low end of its content, so a
 * table grows out of itself. An absent key passes with probability count / 2^32.
 *
 * Before it a bitmap of 8 bits per slot, a quarter of the table's size: it turns away 15 of 16 absent keys. With 10^6 keys the
 * table alone took 120 ns, for it lies beyond the caches. */
typedef struct {
    PyObject_HEAD
    uint32_t *slots, *bits; /* bits: after the slots */
    uint64_t mask, count, seed;
} Keyset;

static inline uint32_t keyset_hash(const Keyset *self, const char *key, Py_ssize_t length)
{
    uint64_t hi, lo;
    mphf_hash((const uint8_t *)key, (uint64_t)length, self->seed, &hi, &lo);
    uint32_t hash = (uint32_t)lo;
    return hash ? hash : 1;
}

static inline uint32_t bit_of(uint64_t mask, uint32_t hash) { return hash & (uint32_t)(8 * mask + 7); }

static inline bool keyset_has(const Keyset *self, uint32_t hash)
{
    uint32_t bit = bit_of(self->mask, hash);
    if (!(self->bits[bit >> 5] >> (bit & 31) & 1))
        return false;
    uint64_t i = hash & self->mask;
    while (self->slots[i] && self->slots[i] != hash)
        i = (i + 1) & self->mask;
    return self->slots[i] != 0;
}

static void insert(Keyset *self, uint32_t hash)
{
    uint32_t bit = bit_of(self->mask, hash);
    uint64_t i = hash & self->mask;
    while (self->slots[i])
        i = (i + 1) & self->mask;
    self->slots[i] = hash;
    self->bits[bit >> 5] |= (uint32_t)1 << (bit & 31);
}

/* An empty table of 2^k slots in place of the one there is, if any; k ≥ 3. */
static bool allocate_slots(Keyset *self, uint64_t slots)
{
    uint64_t words = slots / 4;
    uint32_t *memory = PyMem_Calloc(slots + words, sizeof(uint32_t));
    if (!memory) {
        PyErr_NoMemory();
        return false;
    }
    self->slots = memory;
    self->bits = memory + slots;
    self->mask = slots - 1;
    return true;
}

/* To twice the slots. A table of 2^32 holds every hash there is. */
static bool grow(Keyset *self)
{
    uint32_t *before = self->slots;
    uint64_t count = self->mask + 1;
    if (!allocate_slots(self, 2 * count))
        return false;
    for (uint64_t i = 0; i < count; i++)
        if (before[i])
            insert(self, before[i]);
    PyMem_Free(before);
    return true;
}

static bool add(Keyset *self, PyObject *key)
{
    char *data;
    Py_ssize_t length;
    if (PyBytes_AsStringAndSize(key, &data, &length) < 0)
        return false;
    uint32_t hash = keyset_hash(self, data, length);
    if (keyset_has(self, hash))
        return true;
    if (self->mask < UINT32_MAX && 2 * (self->count + 1) > self->mask && !grow(self))
        return false;
    insert(self, hash);
    self->count++;
    return true;
}

static PyObject *keyset_new(PyTypeObject *type, PyObject *arguments, PyObject *Py_UNUSED(names))
{
    unsigned long long seed;
    if (!PyArg_ParseTuple(arguments, "K:Keyset", &seed))
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Keyset *self = (Keyset *)allocate(type, 0);
    if (!self)
        return NULL;
    self->seed = seed;
    if (!allocate_slots(self, 64)) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void keyset_dealloc(PyObject *object)
{
    PyMem_Free(((Keyset *)object)->slots);
    deallocate(object);
}

static PyObject *keyset_add(PyObject *self, PyObject *key)
{
    if (!add((Keyset *)self, key))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *keyset_update(PyObject *self, PyObject *keys)
{
    PyObject *iterator = PyObject_GetIter(keys), *key;
    if (!iterator)
        return NULL;
    while ((key = PyIter_Next(iterator))) {
        bool added = add((Keyset *)self, key);
        Py_DECREF(key);
        if (!added)
            break;
    }
    Py_DECREF(iterator);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

static int keyset_contains(PyObject *object, PyObject *key)
{
    Keyset *self = (Keyset *)object;
    char *data;
    Py_ssize_t length;
    if (PyBytes_AsStringAndSize(key, &data, &length) < 0)
        return -1;
    return keyset_has(self, keyset_hash(self, data, length));
}

static Py_ssize_t keyset_length(PyObject *self) { return (Py_ssize_t)((Keyset *)self)->count; }

static PyMethodDef keyset_methods[] = {
    {"add", keyset_add, METH_O, NULL},
    {"update", keyset_update, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot keyset_slots[] = {
    {Py_tp_new, keyset_new},         {Py_tp_dealloc, keyset_dealloc}, {Py_tp_methods, keyset_methods},
    {Py_sq_contains, keyset_contains}, {Py_sq_length, keyset_length},   {0, NULL},
};
static PyType_Spec keyset_spec = {"mphfstore._layered.Keyset", sizeof(Keyset), 0, Py_TPFLAGS_DEFAULT, keyset_slots};

/* --- Layered --- */

typedef struct {
    PyObject_HEAD
    PyObject *base, *get;    /* base.get; both NULL: nothing lies below */
    const look_up *look_up;  /* how to ask a base that is one of _fastpath; NULL: it is none */
    Keyset *keys;         /* NULL: closed */
    int size;             /* of an integer key in bytes; 0: keys are byte strings */
    bool is_text;         /* `str` is a key, too */
} Layered;

typedef struct {
    PyTypeObject *keyset;
    PyObject *items;        /* _fastpath.Items; NULL if that module is not built, as is look_up */
    const look_up *look_up;
} module_state;

/* Whether the base alone knows `key`. Sets no exception. */
static inline bool unchanged(const Layered *self, PyObject *key)
{
    Keyset *keys = self->keys;
    Py_ssize_t length;
    if (!keys)
        return false;
    if (self->size) {
        if (!PyLong_CheckExact(key))
            return false;
        /* One outside the dtype may look like one inside: then Python has a look. */
        uint64_t word = PyLong_AsUnsignedLongLongMask(key);
        return !keys->count || !keyset_has(keys, keyset_hash(keys, (const char *)&word, self->size));
    }
    char *data;
    if (PyBytes_CheckExact(key)) {
        if (!keys->count)
            return true;
        PyBytes_AsStringAndSize(key, &data, &length);
    } else if (self->is_text && PyUnicode_CheckExact(key)) {
        if (!keys->count)
            return true;
        data = (char *)PyUnicode_AsUTF8AndSize(key, &length);
        if (!data) {
            PyErr_Clear();
            return false;
        }
    } else {
        return false;
    }
    return !keyset_has(keys, keyset_hash(keys, data, length));
}

static PyObject *layered_subscript(PyObject *object, PyObject *key)
{
    Layered *self = (Layered *)object;
    if (!self->base || !unchanged(self, key))
        return PyObject_CallMethod(object, "_item", "(O)", key);
    PyObject *base = Py_NewRef(self->base);
    PyObject *value = self->look_up ? self->look_up->value_or(base, key, NULL) : PyObject_GetItem(base, key);
    Py_DECREF(base);
    return value;
}

static int layered_contains(PyObject *object, PyObject *key)
{
    Layered *self = (Layered *)object;
    if (self->base && unchanged(self, key)) {
        PyObject *base = Py_NewRef(self->base);
        int found = PySequence_Contains(base, key);
        Py_DECREF(base);
        return found;
    }
    PyObject *answer = PyObject_CallMethod(object, "_has", "(O)", key);
    int found = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return found;
}

static PyObject *layered_get(PyObject *object, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    Layered *self = (Layered *)object;
    PyObject *fallback = count > 1 ? arguments[1] : Py_None;
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    if (count == 1 && named == 1 && PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, 0), "default") == 0) {
        fallback = arguments[1];
    } else if (named || count < 1 || count > 2) {
        PyErr_Format(PyExc_TypeError, "get() takes a key and a default, not %zd arguments", count + named);
        return NULL;
    }
    if (!self->get || !unchanged(self, arguments[0]))
        return PyObject_CallMethod(object, "_get", "(OO)", arguments[0], fallback);
    PyObject *base = Py_NewRef(self->base), *get = Py_NewRef(self->get);
    PyObject *value = self->look_up ? self->look_up->value_or(base, arguments[0], fallback)
                                    : PyObject_CallFunctionObjArgs(get, arguments[0], fallback, NULL);
    Py_DECREF(get);
    Py_DECREF(base);
    return value;
}

static int layered_clear(PyObject *object)
{
    Layered *self = (Layered *)object;
    Py_CLEAR(self->get);
    Py_CLEAR(self->base);
    Py_CLEAR(self->keys);
    return 0;
}

static PyObject *layered_attach(PyObject *object, PyTypeObject *type, PyObject *const *arguments, size_t count, PyObject *names)
{
    const module_state *state = PyType_GetModuleState(type);
    Layered *self = (Layered *)object;
    if (count != 4 || names || (arguments[1] != Py_None && !PyObject_TypeCheck(arguments[1], state->keyset))) {
        PyErr_SetString(PyExc_TypeError, "_attach takes a base, a Keyset, the size of a key and whether keys are text");
        return NULL;
    }
    long size = PyLong_AsLong(arguments[2]);
    int is_text = PyObject_IsTrue(arguments[3]);
    if (PyErr_Occurred())
        return NULL;
    if (size < 0 || size > 8) {
        PyErr_Format(PyExc_ValueError, "integer keys of %ld bytes", size);
        return NULL;
    }
    PyObject *get = arguments[0] == Py_None ? NULL : PyObject_GetAttrString(arguments[0], "get");
    if (!get && arguments[0] != Py_None)
        return NULL;
    int is_ours = get && state->items ? PyObject_IsInstance(arguments[0], state->items) : 0;
    if (is_ours < 0) {
        Py_XDECREF(get);
        return NULL;
    }
    /* All change before anything is released, which may run Python code. */
    PyObject *old_base = self->base, *old_get = self->get;
    Keyset *old_keys = self->keys;
    self->base = arguments[0] == Py_None ? NULL : Py_NewRef(arguments[0]);
    self->get = get;
    self->look_up = is_ours ? state->look_up : NULL;
    self->keys = arguments[1] == Py_None ? NULL : (Keyset *)Py_NewRef(arguments[1]);
    self->size = (int)size;
    self->is_text = is_text != 0;
    Py_XDECREF(old_get);
    Py_XDECREF(old_base);
    Py_XDECREF(old_keys);
    Py_RETURN_NONE;
}

static int layered_traverse(PyObject *object, visitproc visit, void *arg)
{
    Layered *self = (Layered *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->base);
    Py_VISIT(self->get);
    Py_VISIT(self->keys);
    return 0;
}

static void layered_dealloc(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    layered_clear(object);
    deallocate(object);
}

#define METHOD(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef layered_methods[] = {
    {"_attach", METHOD(layered_attach), METH_METHOD | METH_FASTCALL | METH_KEYWORDS, NULL},
    {"get", METHOD(layered_get), METH_FASTCALL | METH_KEYWORDS,
     "get($self, /, key, default=None)\n--\n\n"
     "The key's value, or `default` if it is absent."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot layered_slots[] = {
    {Py_tp_dealloc, layered_dealloc},     {Py_tp_traverse, layered_traverse},   {Py_tp_clear, layered_clear},
    {Py_mp_subscript, layered_subscript}, {Py_sq_contains, layered_contains}, {Py_tp_methods, layered_methods},
    {0, NULL},
};
static PyType_Spec layered_spec = {
    "mphfstore._layered.Layered", sizeof(Layered), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    layered_slots,
};

/* --- module --- */

static int execute(PyObject *module)
{
    module_state *state = PyModule_GetState(module);
    PyObject *keyset = PyType_FromModuleAndSpec(module, &keyset_spec, NULL), *layered;
    if (!keyset)
        return -1;
    state->keyset = (PyTypeObject *)keyset;
    PyObject *fastpath = PyImport_ImportModule("mphfstore._fastpath");
    if (fastpath) {
        state->items = PyObject_GetAttrString(fastpath, "Items");
        state->look_up = PyCapsule_Import(LOOK_UP_CAPSULE, 0);
        Py_DECREF(fastpath);
        if (!state->items || !state->look_up)
            return -1;
    } else if (PyErr_ExceptionMatches(PyExc_ImportError)) {
        PyErr_Clear();
    } else {
        return -1;
    }
    layered = PyType_FromModuleAndSpec(module, &layered_spec, NULL);
    int status = layered && PyModule_AddType(module, (PyTypeObject *)layered) == 0 ? 0 : -1;
    Py_XDECREF(layered);
    return status ? status : PyModule_AddType(module, state->keyset);
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    Py_VISIT(((module_state *)PyModule_GetState(module))->keyset);
    Py_VISIT(((module_state *)PyModule_GetState(module))->items);
    return 0;
}

static int module_clear(PyObject *module)
{
    Py_CLEAR(((module_state *)PyModule_GetState(module))->keyset);
    Py_CLEAR(((module_state *)PyModule_GetState(module))->items);
    return 0;
}

static void module_free(void *module) { module_clear(module); }

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, execute}, {0, NULL}};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "mphfstore._layered",
    .m_size = sizeof(module_state),
    .m_slots = module_slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit__layered(void); /* PyMODINIT_FUNC alone is no prototype */
PyMODINIT_FUNC PyInit__layered(void) { return PyModuleDef_Init(&definition); }
