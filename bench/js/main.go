// Command js compares our JavaScript engine with goja: the start of a run, calls of the
// host, a megabyte of JSON in and out, and the memory of a thousand idle instances. Both
// engines run the same scripts alternately; the CPU time of the best turn counts.
//
//	cd bench/js && go run . [-turns 5]
//
// The two differ in their guarantees. Ours runs the script in a memory of its own and can
// stop it anywhere; goja shares the heap of the program and has no limits. On a busy machine of two processors a start cost 15 times goja's (a third
// of a millisecond, of which a script waits for half: used instances are wiped beside
// the scripts), a synchronous call of the host 3.8 times, an asynchronous one 4.5, a
// megabyte of JSON 0.9 times. An idle instance held 640 KiB, an idle session 125 KiB,
// a goja runtime 15 KiB.
//
// If the two have different results for a script, it exits with status 1.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	var (
		role  = flag.String("role", "", "what to create and leave idle; used by the program itself")
		turns = flag.Int("turns", 5, "number of turns of each engine")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *role == "" {
		err = compare(ctx, *turns)
	} else {
		err = measureIdle(ctx, os.Stdout, *role)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/js:", err)
		os.Exit(1)
	}
}

const rowFormat = "| %-28s | %12s | %12s | %9s |\n"

// compare prints a row for each work, then the memory of idle instances.
func compare(ctx context.Context, turns int) error {
	own, err := newOurs()
	if err != nil {
		return err
	}
	if err := own.engine.Warm(ctx); err != nil {
		return err
	}
	fmt.Printf("CPU time, user and system, best of %d turns; resident memory of %d idle ones.\n\n", turns, idle)
	fmt.Printf(rowFormat, "", "ours", "goja", "ours/goja")
	fmt.Println("|---|--:|--:|--:|")
	for _, w := range works {
		best, err := w.race(ctx, [2]engine{own, other{}}, turns)
		if err != nil {
			return err
		}
		fmt.Printf(rowFormat, w.name, shown(best[0]), shown(best[1]), ratio(best[0], best[1]))
	}
	return printIdle(ctx)
}

func shown(d time.Duration) string {
	if d >= time.Millisecond {
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.1f µs", float64(d)/float64(time.Microsecond))
}

func ratio[N ~int64 | ~float64](a, b N) string { return fmt.Sprintf("%.2f", float64(a)/float64(b)) }
