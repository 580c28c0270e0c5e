// Command zmq measures what a call of a tool in another process costs over ZeroMQ,
// side by side with the same call over HTTP. The same source of tools is served by
// the bridge and by the hub, each in a process of its own, and called through the
// connection manager, by one caller and by many. Turns alternate, so that what
// else the machine does meets both alike.
//
//	go run ./bench/zmq [-for 2s] [-turns 3] [-callers 1,16,64] [-bytes 100]
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/core/tool"
)

func main() {
	var (
		role    = flag.String("role", "", "serve as zmq or http; used by the program itself")
		length  = flag.Duration("for", 2*time.Second, "how long one turn of a row is measured")
		turns   = flag.Int("turns", 3, "how many turns each row has; the best counts")
		callers = flag.String("callers", "1,16,64", "how many calls at a time")
		bytes   = flag.Int("bytes", 100, "how long the text is that goes there and back")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, *role, *length, *turns, *callers, *bytes)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/zmq:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, role string, length time.Duration, turns int, callers string, bytes int) error {
	switch role {
	case "zmq":
		return serveZMQ(ctx)
	case "http":
		return serveHTTP(ctx)
	}
	var counts []int
	for word := range strings.SplitSeq(callers, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return fmt.Errorf("-callers %q: want numbers like 1,16,64", callers)
		}
		counts = append(counts, n)
	}
	args, err := json.Marshal(map[string]string{"text": strings.Repeat("x", bytes)})
	if err != nil {
		return err
	}
	return measure(ctx, counts, turns, length, args)
}

// echo is the source that both serve.
type echo struct{}

func (echo) Tools(context.Context) ([]tool.Info, error) {
	schema := json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`)
	raw := json.RawMessage(`{"name":"echo","description":"Says it again","inputSchema":` + string(schema) + `,"annotations":{"readOnlyHint":true}}`)
	return []tool.Info{{Ref: tool.Ref{Name: "echo"}, Description: "Says it again", Input: schema, Hints: tool.Hints{ReadOnly: true}, Raw: raw}}, nil
}

func (echo) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	var in struct{ Text string }
	if err := json.Unmarshal(call.Args, &in); err != nil {
		return tool.Result{}, err
	}
	return tool.Output(in.Text, map[string]string{"text": in.Text})
}
