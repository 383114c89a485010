/* librdkafka's producer, called without the binding.

   confluent-kafka makes an object of each delivery, with copies of the record in it.
   Here deliveries are counted: one number for all records of a transaction. It is the
   same librdkafka, that of the binding's wheel, and the binding's errors.

   One thread produces and polls; any may ask for metadata. What librdkafka calls back
   is kept until `take`, so that no Python runs within a poll.

   docs/decisions/0119-producer-without-the-binding.md */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* of rdkafka.h: its ABI has not changed since 1.0 */
typedef struct rd_kafka_s rd_kafka_t;
typedef struct rd_kafka_conf_s rd_kafka_conf_t;
typedef struct rd_kafka_topic_s rd_kafka_topic_t;
typedef struct rd_kafka_headers_s rd_kafka_headers_t;
typedef struct {
    int err;
    rd_kafka_topic_t *rkt;
    int32_t partition;
    void *payload;
    size_t len;
    void *key;
    size_t key_len;
    int64_t offset;
    void *_private;
} rd_kafka_message_t;
typedef void report_cb(rd_kafka_t *, const rd_kafka_message_t *, void *);
typedef void error_cb(rd_kafka_t *, int, const char *, void *);
typedef void log_cb(const rd_kafka_t *, int, const char *, const char *);
enum { END, TOPIC, RKT, PARTITION, VALUE, KEY, OPAQUE, FLAGS, TIMESTAMP, HEADER, HEADERS };
enum { PRODUCER = 0, COPY = 2, PURGE_ALL = 3, QUEUE_FULL = -184, FATAL = -150 };

#define FUNCTIONS(F) \
    F(rd_kafka_conf_t *, rd_kafka_conf_new, (void)) \
    F(void, rd_kafka_conf_destroy, (rd_kafka_conf_t *)) \
    F(int, rd_kafka_conf_set, \
      (rd_kafka_conf_t *, const char *, const char *, char *, size_t)) \
    F(void, rd_kafka_conf_set_dr_msg_cb, (rd_kafka_conf_t *, report_cb *)) \
    F(void, rd_kafka_conf_set_error_cb, (rd_kafka_conf_t *, error_cb *)) \
    F(void, rd_kafka_conf_set_log_cb, (rd_kafka_conf_t *, log_cb *)) \
    F(void, rd_kafka_conf_set_opaque, (rd_kafka_conf_t *, void *)) \
    F(void *, rd_kafka_opaque, (const rd_kafka_t *)) \
    F(rd_kafka_t *, rd_kafka_new, (int, rd_kafka_conf_t *, char *, size_t)) \
    F(int, rd_kafka_set_log_queue, (rd_kafka_t *, void *)) \
    F(const char *, rd_kafka_name, (const rd_kafka_t *)) \
    F(void, rd_kafka_destroy, (rd_kafka_t *)) \
    F(int, rd_kafka_last_error, (void)) \
    F(int, rd_kafka_fatal_error, (rd_kafka_t *, char *, size_t)) \
    F(rd_kafka_topic_t *, rd_kafka_topic_new, (rd_kafka_t *, const char *, void *)) \
    F(const char *, rd_kafka_topic_name, (const rd_kafka_topic_t *)) \
    F(void, rd_kafka_topic_destroy, (rd_kafka_topic_t *)) \
    F(int, rd_kafka_metadata, \
      (rd_kafka_t *, int, rd_kafka_topic_t *, const void **, int)) \
    F(void, rd_kafka_metadata_destroy, (const void *)) \
    F(rd_kafka_headers_t *, rd_kafka_headers_new, (size_t)) \
    F(int, rd_kafka_header_add, \
      (rd_kafka_headers_t *, const char *, Py_ssize_t, const void *, Py_ssize_t)) \
    F(void, rd_kafka_headers_destroy, (rd_kafka_headers_t *)) \
    F(int, rd_kafka_producev, (rd_kafka_t *, ...)) \
    F(int, rd_kafka_poll, (rd_kafka_t *, int)) \
    F(int, rd_kafka_flush, (rd_kafka_t *, int)) \
    F(int, rd_kafka_purge, (rd_kafka_t *, int)) \
    F(int, rd_kafka_outq_len, (rd_kafka_t *))
#define DECLARE(result, name, arguments) static result(*name) arguments;
FUNCTIONS(DECLARE)

static PyObject *kafka_error, *kafka_exception;
static PyTypeObject *count_type;

/* --- deliveries ---------------------------------------------------------------- */

/* Records of one owner. While some are in flight its producer holds a reference. */
typedef struct Count {
    PyObject_HEAD
    PyObject *owner; /* NULL: nobody wants to know any more */
    void *producer; /* while some are in flight; not a reference */
    struct Count *next, *previous; /* of those in flight */
    struct Count *next_told;
    long in_flight, delivered, failed; /* the last two since `take` */
    int64_t offset; /* of the last one delivered; -1: of none */
    int is_told;
} Count;

typedef struct {
    Count *count;
    int code; /* 0: without an offset */
    int32_t partition;
    char *topic;
} Failure;

typedef struct {
    int level; /* syslog's; -1: an error, -2: one that ends the producer */
    int code;
    char *facility, *text;
} Word;

typedef struct {
    PyObject_HEAD
    rd_kafka_t *rk;
    PyObject *topics; /* handles by name */
    PyObject *last_name; /* as it was given */
    rd_kafka_topic_t *last_topic;
    Count *in_flight, *told;
    long reported; /* since `take` */
    Failure *failures;
    Word *words;
    size_t failures_size, failures_room, words_size, words_room;
    int has_lost; /* a word, for want of memory */
    int is_served; /* without the interpreter's lock */
} Producer;

/* Make room for one more; NULL: there is no memory. */
static void *grown(void *items, size_t size, size_t *room, size_t each) {
    if (size < *room) return items;
    size_t wanted = *room ? 2 * *room : 16;
    void *made = realloc(items, wanted * each);
    if (made) *room = wanted;
    return made;
}

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    Producer *self = opaque;
    Count *count = message->_private;
    (void)rk;
    self->reported++;
    if (!count->is_told) {
        count->is_told = 1;
        count->next_told = self->told;
        self->told = count;
    }
    if (!message->err && message->offset >= 0) {
        count->delivered++;
        count->offset = message->offset;
        return;
    }
    count->failed++;
    if (self->failures_size) { /* of very many the first tells enough */
        Failure *last = &self->failures[self->failures_size - 1];
        if (last->count == count && last->code == message->err) return;
    }
    char *topic = strdup(rd_kafka_topic_name(message->rkt));
    Failure *room = topic ? grown(self->failures, self->failures_size,
                                  &self->failures_room, sizeof *room)
                          : NULL;
    if (!room) {
        free(topic);
        self->has_lost = 1;
        return;
    }
    self->failures = room;
    room[self->failures_size++] =
        (Failure){count, message->err, message->partition, topic};
}

static void keep(Producer *self, int level, int code, const char *facility,
                 const char *text) {
    Word word = {level, code, strdup(facility), strdup(text)};
    Word *room = word.facility && word.text ? grown(self->words, self->words_size,
                                                    &self->words_room, sizeof *room)
                                            : NULL;
    if (!room) {
        free(word.facility);
        free(word.text);
        self->has_lost |= level < 0;
        return;
    }
    self->words = room;
    room[self->words_size++] = word;
}

static void on_error(rd_kafka_t *rk, int code, const char *reason, void *opaque) {
    char text[512] = "";
    if (code != FATAL) {
        keep(opaque, -1, code, "", reason);
    } else {
        code = rd_kafka_fatal_error(rk, text, sizeof text);
        keep(opaque, -2, code, "", text);
    }
}

static void on_log(const rd_kafka_t *rk, int level, const char *facility,
                   const char *text) {
    Producer *self = rd_kafka_opaque(rk);
    if (self) keep(self, level, 0, facility, text);
}

/* --- Count --------------------------------------------------------------------- */

static PyObject *made_count(PyObject *owner) {
    allocfunc alloc = (allocfunc)PyType_GetSlot(count_type, Py_tp_alloc);
    Count *self = (Count *)alloc(count_type, 0);
    if (self) {
        Py_INCREF(owner);
        self->owner = owner;
        self->offset = -1;
    }
    return (PyObject *)self;
}

static PyObject *count_new(PyTypeObject *type, PyObject *arguments, PyObject *named) {
    PyObject *owner;
    (void)type;
    if (named || !PyArg_ParseTuple(arguments, "O:Count", &owner)) return NULL;
    return made_count(owner);
}

static void freed(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF((PyObject *)type);
}

static void count_dealloc(PyObject *self) {
    Py_CLEAR(((Count *)self)->owner);
    freed(self);
}

static PyObject *count_offset(PyObject *self, PyObject *ignored) {
    (void)ignored;
    return PyLong_FromLongLong(((Count *)self)->offset);
}

static void link_count(Producer *self, Count *count) {
    Py_INCREF((PyObject *)count);
    count->previous = NULL;
    count->producer = self;
    count->next = self->in_flight;
    if (count->next) count->next->previous = count;
    self->in_flight = count;
}

static void unlink_count(Producer *self, Count *count) {
    if (count->next) count->next->previous = count->previous;
    if (count->previous) count->previous->next = count->next;
    else self->in_flight = count->next;
    count->next = count->previous = count->next_told = NULL;
    count->producer = NULL;
    count->in_flight = count->delivered = count->failed = 0;
    count->is_told = 0;
    Py_DECREF((PyObject *)count);
}

/* --- Producer ------------------------------------------------------------------ */

static PyObject *raised(int code, const char *reason) {
    PyObject *error = reason ? PyObject_CallFunction(kafka_error, "is", code, reason)
                             : PyObject_CallFunction(kafka_error, "i", code);
    if (error) {
        PyErr_SetObject(kafka_exception, error);
        Py_DECREF(error);
    }
    return NULL;
}

static int is_usable(Producer *self) {
    if (self->is_served) {
        PyErr_SetString(PyExc_RuntimeError, "another thread serves this producer");
        return 0;
    }
    return 1;
}

static int configure(rd_kafka_conf_t *conf, PyObject *properties) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    char text[512];
    while (PyDict_Next(properties, &at, &key, &value)) {
        const char *name = PyUnicode_AsUTF8AndSize(key, NULL);
        const char *given = name ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL;
        if (!given) return 0;
        if (rd_kafka_conf_set(conf, name, given, text, sizeof text)) {
            raised(-186, text); /* _INVALID_ARG, as the binding says it */
            return 0;
        }
    }
    return 1;
}

static PyObject *producer_new(PyTypeObject *type, PyObject *arguments, PyObject *named) {
    PyObject *properties;
    char text[512];
    if (named || !PyArg_ParseTuple(arguments, "O!:Producer", &PyDict_Type, &properties))
        return NULL;
    Producer *self = (Producer *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!self) return NULL;
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    self->topics = PyDict_New();
    if (!self->topics || !configure(conf, properties) ||
        rd_kafka_conf_set(conf, "log.queue", "true", text, sizeof text)) {
        rd_kafka_conf_destroy(conf);
        Py_DECREF((PyObject *)self);
        return NULL;
    }
    rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    rd_kafka_conf_set_error_cb(conf, on_error);
    rd_kafka_conf_set_log_cb(conf, on_log);
    rd_kafka_conf_set_opaque(conf, self);
    self->rk = rd_kafka_new(PRODUCER, conf, text, sizeof text);
    if (!self->rk) {
        int code = rd_kafka_last_error();
        rd_kafka_conf_destroy(conf);
        Py_DECREF((PyObject *)self);
        return raised(code, text);
    }
    rd_kafka_set_log_queue(self->rk, NULL); /* to what `poll` serves */
    return (PyObject *)self;
}

static void forget(Producer *self) {
    for (size_t i = 0; i < self->failures_size; i++) free(self->failures[i].topic);
    for (size_t i = 0; i < self->words_size; i++) {
        free(self->words[i].facility);
        free(self->words[i].text);
    }
    self->failures_size = self->words_size = 0;
}

static void producer_dealloc(PyObject *object) {
    Producer *self = (Producer *)object;
    PyObject *name, *handle;
    Py_ssize_t at = 0;
    while (self->topics && PyDict_Next(self->topics, &at, &name, &handle))
        rd_kafka_topic_destroy(PyLong_AsVoidPtr(handle));
    if (self->rk) {
        Py_BEGIN_ALLOW_THREADS
        rd_kafka_destroy(self->rk);
        Py_END_ALLOW_THREADS
    }
    /* nothing points at them any more: of what was in flight no report comes */
    while (self->in_flight) unlink_count(self, self->in_flight);
    Py_CLEAR(self->last_name);
    Py_CLEAR(self->topics);
    forget(self);
    free(self->failures);
    free(self->words);
    freed(object);
}

static rd_kafka_topic_t *topic_of(Producer *self, PyObject *name) {
    if (name == self->last_name) return self->last_topic;
    rd_kafka_topic_t *topic;
    PyObject *handle = PyDict_GetItemWithError(self->topics, name);
    if (handle) {
        topic = PyLong_AsVoidPtr(handle);
    } else {
        const char *text = PyErr_Occurred() ? NULL : PyUnicode_AsUTF8AndSize(name, NULL);
        if (!text) return NULL;
        topic = rd_kafka_topic_new(self->rk, text, NULL);
        if (!topic) {
            raised(rd_kafka_last_error(), NULL);
            return NULL;
        }
        handle = PyLong_FromVoidPtr(topic);
        int failed = !handle || PyDict_SetItem(self->topics, name, handle);
        Py_XDECREF(handle);
        if (failed) {
            rd_kafka_topic_destroy(topic);
            return NULL;
        }
    }
    PyObject *before = self->last_name;
    Py_INCREF(name);
    self->last_name = name;
    self->last_topic = topic;
    Py_XDECREF(before);
    return topic;
}

static int bytes_of(PyObject *given, char **at, Py_ssize_t *size) {
    *at = NULL;
    *size = 0;
    if (given == Py_None) return 1;
    if (PyUnicode_Check(given))
        return (*at = (char *)PyUnicode_AsUTF8AndSize(given, size)) != NULL;
    return PyBytes_AsStringAndSize(given, at, size) == 0;
}

static rd_kafka_headers_t *headers_of(PyObject *list) {
    if (!PyList_Check(list)) {
        PyErr_SetString(PyExc_TypeError, "headers are a list of pairs");
        return NULL;
    }
    Py_ssize_t count = PyList_Size(list);
    rd_kafka_headers_t *headers = rd_kafka_headers_new((size_t)count);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *pair = PyList_GetItem(list, i);
        int is_pair = PyTuple_Check(pair) && PyTuple_Size(pair) == 2;
        PyObject *name = is_pair ? PyTuple_GetItem(pair, 0) : Py_None;
        PyObject *value = is_pair ? PyTuple_GetItem(pair, 1) : NULL;
        char *name_at, *value_at;
        Py_ssize_t name_size, value_size;
        if (!is_pair) PyErr_SetString(PyExc_TypeError, "headers are a list of pairs");
        if (!is_pair || !(name_at = (char *)PyUnicode_AsUTF8AndSize(name, &name_size)) ||
            !bytes_of(value, &value_at, &value_size)) {
            rd_kafka_headers_destroy(headers);
            return NULL;
        }
        rd_kafka_header_add(headers, name_at, name_size, value_at, value_size);
    }
    return headers;
}

PyDoc_STRVAR(produce_doc,
"produce(topic, value, key, partition, count, on_delivery=None, timestamp_ms=0, "
"headers=None)\n\n"
"Enqueue one record, as confluent_kafka.Producer.produce does; `on_delivery` is None.\n"
"`count` is a Count, or what `take` names alone for this record.\n"
"Raises BufferError where there is no room, else KafkaException.");

static PyObject *producer_produce(PyObject *object, PyObject *const *given,
                                  Py_ssize_t size) {
    Producer *self = (Producer *)object;
    if (size < 5 || size > 8) {
        PyErr_SetString(PyExc_TypeError, "produce takes 5 to 8 positional arguments");
        return NULL;
    }
    if (!is_usable(self)) return NULL;
    char *value, *key;
    Py_ssize_t value_size, key_size;
    rd_kafka_topic_t *topic = topic_of(self, given[0]);
    if (!topic || !bytes_of(given[1], &value, &value_size) ||
        !bytes_of(given[2], &key, &key_size))
        return NULL;
    long partition = PyLong_AsLong(given[3]);
    int64_t timestamp = size > 6 ? PyLong_AsLongLong(given[6]) : 0; /* 0: now */
    if (PyErr_Occurred()) return NULL;
    if (partition < -1 || partition > INT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "no partition has such a number");
        return NULL;
    }
    rd_kafka_headers_t *headers = NULL;
    if (size > 7 && given[7] != Py_None && !(headers = headers_of(given[7])))
        return NULL;
    PyObject *made = NULL;
    if (Py_TYPE(given[4]) != count_type && !(made = made_count(given[4]))) {
        if (headers) rd_kafka_headers_destroy(headers);
        return NULL;
    }
    Count *count = (Count *)(made ? made : given[4]);
    if (count->in_flight && count->producer != self) {
        if (headers) rd_kafka_headers_destroy(headers);
        PyErr_SetString(PyExc_ValueError, "records of another producer are in flight");
        return NULL;
    }
    int code = rd_kafka_producev(
        self->rk, RKT, topic, PARTITION, (int32_t)partition, VALUE, value,
        (size_t)value_size, KEY, key, (size_t)key_size, OPAQUE, count, FLAGS, COPY,
        TIMESTAMP, timestamp, headers ? HEADERS : END, headers, END);
    if (!code && !count->in_flight++) link_count(self, count);
    if (code && headers) rd_kafka_headers_destroy(headers);
    Py_XDECREF(made);
    if (!code) Py_RETURN_NONE;
    if (code != QUEUE_FULL) return raised(code, NULL);
    PyErr_SetString(PyExc_BufferError, "Local: Queue full");
    return NULL;
}

static PyObject *served(PyObject *object, PyObject *seconds,
                        int (*serve)(rd_kafka_t *, int)) {
    Producer *self = (Producer *)object;
    double given = PyFloat_AsDouble(seconds);
    if ((given == -1.0 && PyErr_Occurred()) || !is_usable(self)) return NULL;
    int wait_ms = given <= 0 ? 0 : given > 1e6 ? 1000000000 : (int)(given * 1000);
    int done;
    self->is_served = 1;
    Py_BEGIN_ALLOW_THREADS
    done = serve(self->rk, wait_ms);
    Py_END_ALLOW_THREADS
    self->is_served = 0;
    return PyLong_FromLong(done);
}

static PyObject *producer_poll(PyObject *self, PyObject *seconds) {
    return served(self, seconds, rd_kafka_poll);
}

static PyObject *producer_flush(PyObject *self, PyObject *seconds) {
    return served(self, seconds, rd_kafka_flush);
}

static PyObject *producer_purge(PyObject *object, PyObject *ignored) {
    Producer *self = (Producer *)object;
    (void)ignored;
    Py_BEGIN_ALLOW_THREADS
    rd_kafka_purge(self->rk, PURGE_ALL);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static int append(PyObject *list, PyObject *item) {
    int failed = !item || PyList_Append(list, item);
    Py_XDECREF(item);
    return !failed;
}

static int told_counts(Producer *self, PyObject *delivered) {
    int done = 1;
    while (self->told) {
        Count *count = self->told;
        self->told = count->next_told;
        if (count->delivered && count->owner && done)
            done = append(delivered, Py_BuildValue("(Ol)", count->owner, count->delivered));
        count->in_flight -= count->delivered + count->failed;
        count->delivered = count->failed = 0;
        count->is_told = 0;
        count->next_told = NULL;
        if (!count->in_flight) unlink_count(self, count);
    }
    return done;
}

PyDoc_STRVAR(take_doc,
"take() -> None | (reported, delivered, failures, words)\n\n"
"Return what was told since the last time; None: nothing. `reported` is the number of\n"
"records delivered or failed, `delivered` has (owner, number), `failures` have (owner,\n"
"code, topic, partition), `words` (level, code, facility, text): level -1 is an error,\n"
"-2 one that ends the producer, others are syslog's.");

static PyObject *producer_take(PyObject *object, PyObject *ignored) {
    Producer *self = (Producer *)object;
    (void)ignored;
    if (!is_usable(self)) return NULL;
    if (!self->told && !self->words_size && !self->has_lost) Py_RETURN_NONE;
    PyObject *delivered = PyList_New(0), *failures = PyList_New(0), *words = PyList_New(0);
    int done = delivered && failures && words;
    for (size_t i = 0; done && i < self->failures_size; i++) {
        Failure *one = &self->failures[i];
        if (one->count->owner)
            done = append(failures, Py_BuildValue("(Oisi)", one->count->owner, one->code,
                                                  one->topic, (int)one->partition));
    }
    for (size_t i = 0; done && i < self->words_size; i++) {
        Word *one = &self->words[i];
        /* its texts may have what a stranger sent */
        PyObject *text = PyUnicode_DecodeUTF8(one->text, (Py_ssize_t)strlen(one->text),
                                              "replace");
        done = text && append(words, Py_BuildValue("(iisN)", one->level, one->code,
                                                   one->facility, text));
    }
    done = done && told_counts(self, delivered);
    if (self->has_lost && done) {
        done = 0;
        PyErr_NoMemory();
    }
    PyObject *found = done ? Py_BuildValue("(lOOO)", self->reported, delivered, failures,
                                           words)
                           : NULL;
    Py_XDECREF(delivered);
    Py_XDECREF(failures);
    Py_XDECREF(words);
    self->reported = 0;
    self->has_lost = 0;
    forget(self);
    return found;
}

PyDoc_STRVAR(close_doc,
"close()\n\nLet go of all owners: of what is in flight nothing is told any more.");

static PyObject *producer_close(PyObject *object, PyObject *ignored) {
    Producer *self = (Producer *)object;
    (void)ignored;
    if (!is_usable(self)) return NULL;
    for (Count *one = self->in_flight; one; one = one->next) {
        PyObject *owner = one->owner;
        one->owner = NULL;
        Py_XDECREF(owner);
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(list_topics_doc,
"list_topics(topic, timeout)\n\nAsk for metadata, which librdkafka keeps.");

static PyObject *producer_list_topics(PyObject *object, PyObject *const *given,
                                      Py_ssize_t size) {
    Producer *self = (Producer *)object;
    const void *metadata = NULL;
    if (size != 2) {
        PyErr_SetString(PyExc_TypeError, "list_topics takes 2 positional arguments");
        return NULL;
    }
    double seconds = PyFloat_AsDouble(given[1]);
    if (seconds == -1.0 && PyErr_Occurred()) return NULL;
    rd_kafka_topic_t *topic = topic_of(self, given[0]);
    if (!topic) return NULL;
    int code;
    Py_BEGIN_ALLOW_THREADS
    code = rd_kafka_metadata(self->rk, 0, topic, &metadata, (int)(seconds * 1000));
    if (!code) rd_kafka_metadata_destroy(metadata);
    Py_END_ALLOW_THREADS
    if (code) return raised(code, NULL);
    Py_RETURN_NONE;
}

static Py_ssize_t producer_length(PyObject *self) {
    return rd_kafka_outq_len(((Producer *)self)->rk);
}

static PyObject *producer_name(PyObject *self, void *ignored) {
    (void)ignored;
    return PyUnicode_FromString(rd_kafka_name(((Producer *)self)->rk));
}

/* --- module -------------------------------------------------------------------- */

static PyMethodDef producer_methods[] = {
    {"produce", (PyCFunction)(void (*)(void))producer_produce, METH_FASTCALL, produce_doc},
    {"poll", producer_poll, METH_O, "poll(seconds)\n\nServe callbacks, for `take`."},
    {"flush", producer_flush, METH_O, "flush(seconds)\n\nSend all, and poll so long."},
    {"purge", producer_purge, METH_NOARGS, "purge()\n\nDrop all that is not delivered."},
    {"take", producer_take, METH_NOARGS, take_doc},
    {"close", producer_close, METH_NOARGS, close_doc},
    {"list_topics", (PyCFunction)(void (*)(void))producer_list_topics, METH_FASTCALL,
     list_topics_doc},
    {NULL, NULL, 0, NULL}};
static PyGetSetDef producer_members[] = {
    {"name", producer_name, NULL, "librdkafka's name of it, in its logs", NULL},
    {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot producer_slots[] = {{Py_tp_new, producer_new},
                                       {Py_tp_dealloc, producer_dealloc},
                                       {Py_tp_methods, producer_methods},
                                       {Py_tp_getset, producer_members},
                                       {Py_sq_length, producer_length},
                                       {0, NULL}};
static PyType_Spec producer_spec = {"walstream.kafka.librdkafka.Producer",
                                    sizeof(Producer), 0, Py_TPFLAGS_DEFAULT,
                                    producer_slots};
static PyMethodDef count_methods[] = {
    {"offset", count_offset, METH_NOARGS,
     "offset()\n\nOf the last record that was delivered; -1: of none."},
    {NULL, NULL, 0, NULL}};
static PyType_Slot count_slots[] = {{Py_tp_new, count_new},
                                    {Py_tp_dealloc, count_dealloc},
                                    {Py_tp_methods, count_methods},
                                    {0, NULL}};
static PyType_Spec count_spec = {"walstream.kafka.librdkafka.Count", sizeof(Count), 0,
                                 Py_TPFLAGS_DEFAULT, count_slots};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "walstream.kafka.librdkafka", NULL, -1, NULL,
    NULL, NULL, NULL, NULL};

/* Find the functions in the library that the binding has loaded. */
static int bind(void) {
    PyObject *binding = PyImport_ImportModule("confluent_kafka.cimpl");
    PyObject *file = binding ? PyObject_GetAttrString(binding, "__file__") : NULL;
    PyObject *named = file ? PyUnicode_EncodeFSDefault(file) : NULL;
    const char *path = named ? PyBytes_AsString(named) : NULL;
    void *library = path ? dlopen(path, RTLD_NOLOAD | RTLD_LAZY) : NULL;
    int done = binding && path;
    if (done && !library) {
        PyErr_Format(PyExc_ImportError, "%U is not loaded", file);
        done = 0;
    }
#define FIND(result, name, arguments) \
    if (done && !(*(void **)&name = dlsym(library, #name))) { \
        PyErr_SetString(PyExc_ImportError, "librdkafka has no " #name); \
        done = 0; \
    }
    FUNCTIONS(FIND)
    if (done) done = (kafka_error = PyObject_GetAttrString(binding, "KafkaError")) &&
                     (kafka_exception = PyObject_GetAttrString(binding, "KafkaException"));
    Py_XDECREF(named);
    Py_XDECREF(file);
    Py_XDECREF(binding);
    return done;
}

static int add(PyObject *module, const char *name, PyObject *type) {
    int failed = !type || PyModule_AddObjectRef(module, name, type);
    return !failed;
}

PyMODINIT_FUNC PyInit_librdkafka(void) {
    if (!bind()) return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (!module) return NULL;
    count_type = (PyTypeObject *)PyType_FromSpec(&count_spec);
    PyObject *producer = PyType_FromSpec(&producer_spec);
    int done = add(module, "Count", (PyObject *)count_type) &&
               add(module, "Producer", producer);
    Py_XDECREF(producer);
    if (!done) Py_CLEAR(module);
    return module;
}
