// Command soak runs a real server under load for a while, and fails when its memory,
// goroutines or open files grow:
//
//	soak -minutes 30 bin/luanette
//
// By default 200 clients and 30 upstreams, some of which restart now and then, call
// tools, run Lua and JavaScript, start jobs, chat, and open and close sessions. After the
// first five minutes nothing may grow by more than 10 %.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// options of a run.
type options struct {
	binary             string
	length, warmup     time.Duration
	clients, upstreams int
	rate               int // actions a second, of all clients
}

func main() {
	minutes := flag.Float64("minutes", 30, "how long")
	o := options{}
	flag.IntVar(&o.clients, "clients", 200, "how many clients")
	flag.IntVar(&o.upstreams, "upstreams", 30, "how many upstreams")
	flag.IntVar(&o.rate, "rate", 100, "actions a second, of all clients together")
	flag.DurationVar(&o.warmup, "warmup", 5*time.Minute, "until values are compared")
	flag.Parse()
	if o.length = time.Duration(*minutes * float64(time.Minute)); flag.NArg() != 1 || o.length < o.warmup+2*window {
		fmt.Fprintf(os.Stderr, "usage: soak [flags] BINARY; it takes at least %v\n", o.warmup+2*window)
		os.Exit(2)
	}
	o.binary = flag.Arg(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	s, err := startServers(ctx, o)
	defer s.stop()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.length)
	defer cancel()
	load := newLoad(s, o)
	var all sync.WaitGroup
	for n := range o.clients {
		all.Go(func() { load.client(ctx, n) })
	}
	all.Go(func() { s.restartSome(ctx) })
	readings := watch(ctx, s.url, load.report)
	cancel()
	all.Wait()
	fmt.Println(load.report())
	if err := load.check(); err != nil {
		return err
	}
	return compare(readings, o.warmup)
}
