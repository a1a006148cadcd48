// Drives River: `river enqueue|drain SETTINGS`, see bench/peers/peer.py.
package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const chunk = 1000

type settings struct {
	URL        string `json:"url"`
	Rows       int    `json:"rows"`
	Pad        int    `json:"pad"`
	Record     string `json:"record"`
	Unfinished string `json:"unfinished"`
	MaxWorkers int    `json:"maxWorkers"`
	CooldownMS int    `json:"cooldown"`
}

type message struct {
	N   int    `json:"n"`
	Pad string `json:"pad"`
}

func (message) Kind() string { return "deliver" }

var began = time.Now()

func now() float64 { return time.Since(began).Seconds() }

// record notes each message, in memory.
type record struct {
	river.WorkerDefaults[message]
	lock    sync.Mutex
	rows    int
	numbers []float64
	all     chan struct{}
}

func (r *record) Work(_ context.Context, job *river.Job[message]) error {
	start := now()
	runtime.Gosched() // so that another could begin
	r.lock.Lock()
	defer r.lock.Unlock()
	r.numbers = append(r.numbers, float64(job.Args.N), start, now())
	if len(r.numbers) == 3*r.rows {
		close(r.all)
	}
	return nil
}

// untilDone waits until all are handled and none is left by River's table; or, if messages were lost,
// until none is left for a while.
func (r *record) untilDone(ctx context.Context, pool *pgxpool.Pool, unfinished string) {
	left := func() (n int) {
		must(pool.QueryRow(ctx, unfinished).Scan(&n))
		return n
	}
	handled := false
	for empty := 0; !handled && empty < 3; {
		select {
		case <-r.all:
			handled = true
		case <-time.After(2 * time.Second):
			if left() == 0 {
				empty++
			}
		}
	}
	for left() != 0 {
		time.Sleep(2 * time.Millisecond)
	}
}

func enqueue(ctx context.Context, pool *pgxpool.Pool, s settings) {
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	must(err)
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	must(err)
	client, err := river.NewClient[pgx.Tx](driver, &river.Config{})
	must(err)
	for first := 1; first <= s.Rows; first += chunk {
		var params []river.InsertManyParams
		for n := first; n < first+chunk && n <= s.Rows; n++ {
			pad := strings.Repeat("x", s.Pad-len(fmt.Sprint(n)))
			params = append(params, river.InsertManyParams{Args: message{n, pad}})
		}
		_, err = client.InsertManyFast(ctx, params)
		must(err)
	}
}

func drain(ctx context.Context, pool *pgxpool.Pool, s settings) {
	r := &record{rows: s.Rows, numbers: make([]float64, 0, 6*s.Rows), all: make(chan struct{})}
	workers := river.NewWorkers()
	river.AddWorker(workers, r)
	client, err := river.NewClient[pgx.Tx](riverpgxv5.New(pool), &river.Config{
		FetchCooldown:     time.Duration(s.CooldownMS) * time.Millisecond,
		FetchPollInterval: time.Duration(s.CooldownMS*10) * time.Millisecond,
		Logger:            slog.New(slog.DiscardHandler),
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: s.MaxWorkers}},
		Workers:           workers,
	})
	must(err)
	must(client.Start(ctx))
	started := now()
	r.untilDone(ctx, pool, s.Unfinished)
	ended := now()
	must(client.Stop(ctx))
	file, err := os.Create(s.Record)
	must(err)
	must(binary.Write(file, binary.NativeEndian, r.numbers))
	must(file.Close())
	fmt.Printf("{\"started\": %f, \"ended\": %f}\n", started, ended)
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	var s settings
	must(json.Unmarshal([]byte(os.Args[2]), &s))
	ctx := context.Background()
	config, err := pgxpool.ParseConfig(s.URL)
	must(err)
	config.MaxConns = 10
	pool, err := pgxpool.NewWithConfig(ctx, config)
	must(err)
	must(pool.Ping(ctx))
	map[string]func(context.Context, *pgxpool.Pool, settings){"enqueue": enqueue, "drain": drain}[os.Args[1]](ctx, pool, s)
}
