/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that is far away: passes on what comes, in both directions, each byte so many microseconds after it came.
 * Unlike a slow line it has room for all that is on its way. It goes on until it is killed.
 *
 *     far PORT TO-PORT MICROSECONDS
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

typedef struct piece {
    struct piece *next;
    int64_t due_ns;
    size_t n;
    char bytes[1 << 16];
} piece;

/* What both directions share; the one that ends last closes it. */
typedef struct wire {
    int client, server;
    atomic_int threads;
} wire;

typedef struct direction {
    wire *wire;
    int from, to;
    pthread_t receiver;
    pthread_mutex_t lock;
    pthread_cond_t came;
    piece *first, **end;
} direction;

static int64_t delay_ns;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void let_go(wire *w)
{
    if (atomic_fetch_sub(&w->threads, 1) > 1)
        return;
    close(w->client);
    close(w->server);
    free(w);
}

/* The last piece is empty: whoever sent has hung up. */
static void *receive(void *arg)
{
    direction *d = arg;
    for (ssize_t n = 1; n > 0;) {
        piece *p = malloc(sizeof *p);
        if (!p)
            die("malloc");
        n = read(d->from, p->bytes, sizeof p->bytes);
        p->n = n > 0 ? (size_t)n : 0;
        p->due_ns = now_ns() + delay_ns;
        p->next = NULL;
        pthread_mutex_lock(&d->lock);
        *d->end = p;
        d->end = &p->next;
        pthread_cond_signal(&d->came);
        pthread_mutex_unlock(&d->lock);
    }
    return NULL; /* the other thread takes what came, and ends the direction */
}

static piece *next_piece(direction *d)
{
    pthread_mutex_lock(&d->lock);
    while (!d->first)
        pthread_cond_wait(&d->came, &d->lock);
    piece *p = d->first;
    d->first = p->next;
    if (!d->first)
        d->end = &d->first;
    pthread_mutex_unlock(&d->lock);
    return p;
}

static void pass_on(int to, const piece *p)
{
    int64_t left_ns = p->due_ns - now_ns();
    struct timespec t = { .tv_sec = left_ns / 1000000000,
                          .tv_nsec = (long)(left_ns % 1000000000) };
    if (left_ns > 0)
        nanosleep(&t, NULL);
    for (size_t done = 0; done < p->n;) {
        ssize_t n = send(to, p->bytes + done, p->n - done, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        done += (size_t)n;
    }
}

static void *deliver(void *arg)
{
    direction *d = arg;
    prctl(PR_SET_TIMERSLACK, 1000UL);
    for (size_t n = 1; n > 0;) {
        piece *p = next_piece(d);
        n = p->n;
        pass_on(d->to, p);
        free(p);
    }
    shutdown(d->to, SHUT_WR);
    pthread_join(d->receiver, NULL);
    let_go(d->wire);
    free(d);
    return NULL;
}

static void start(wire *w, int from, int to)
{
    pthread_t thread;
    direction *d = calloc(1, sizeof *d);
    if (!d)
        die("calloc");
    d->wire = w;
    d->from = from;
    d->to = to;
    d->end = &d->first;
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->came, NULL);
    if (pthread_create(&d->receiver, NULL, receive, d) ||
        pthread_create(&thread, NULL, deliver, d) || pthread_detach(thread))
        die("pthread_create");
}

static struct sockaddr_in local(const char *port)
{
    return (struct sockaddr_in){ .sin_family = AF_INET,
                                 .sin_port = htons((uint16_t)strtol(port, NULL, 10)),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static void no_delay(int fd)
{
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fputs("usage: far PORT TO-PORT MICROSECONDS\n", stderr);
        return 2;
    }
    struct sockaddr_in here = local(argv[1]), there = local(argv[2]);
    delay_ns = strtoll(argv[3], NULL, 10) * 1000;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
    if (bind(listener, (struct sockaddr *)&here, sizeof here) || listen(listener, 64))
        die("listen");
    puts("listening");
    fflush(stdout);
    for (;;) {
        int client = accept(listener, NULL, NULL);
        int server = socket(AF_INET, SOCK_STREAM, 0);
        if (client < 0 || connect(server, (struct sockaddr *)&there, sizeof there))
            die("connect");
        no_delay(client);
        no_delay(server);
        wire *w = calloc(1, sizeof *w);
        if (!w)
            die("calloc");
        *w = (wire){ .client = client, .server = server, .threads = 2 };
        start(w, client, server);
        start(w, server, client);
    }
}
