package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/server"
)

// deskFlags are those of every command that asks our tools for something: of a
// running server, or of one that is built for the occasion.
type deskFlags struct {
	settingFlags
	Server string `short:"s" placeholder:"URL" help:"Ask the server running there, such as http://127.0.0.1:8081."`
	tokenFlag
	JSON bool          `help:"Print JSON for programs."`
	Wait time.Duration `default:"30s" help:"How long to wait for upstreams that are slow to start, and for a server to answer."`

	Archive bool           `kong:"-"` // the command looks at jobs
	Notes   map[string]any `kong:"-"` // what goes along with its calls
}

// tokenFlag is what a server is shown to be let in.
type tokenFlag struct {
	Key string `placeholder:"TOKEN" help:"Key for the server; LUANETTE_KEY hides it from whoever lists processes."`
}

// token is the key that was given, or that of the environment.
func (f tokenFlag) token(world *process) secret.Text {
	return secret.New(cmp.Or(f.Key, world.Env["LUANETTE_KEY"], world.Env["ENGINE_API_KEY"]))
}

// open finds the desk. A spinner runs meanwhile when a person is looking.
func (f *deskFlags) open(ctx context.Context, world *process) (server.Desk, error) {
	defer spin(world, "connecting")()
	options := server.Options{Version: version, Stderr: io.Discard, Env: world.Env, Archive: f.Archive}
	if f.Server != "" {
		options.Key, options.Wait = f.token(world), f.Wait
		return server.Connect(ctx, f.Server, options)
	}
	loaded, err := f.load(world, nil)
	if err != nil {
		return nil, err
	}
	if f.LogLevel != nil {
		options.Stderr = world.Stderr
	}
	server.TuneCollector(loaded.GCPercent, world.Env)
	house, err := server.Build(ctx, loaded, options)
	if err != nil {
		return nil, err
	}
	return house.Desk(ctx, f.Wait), nil
}

// at opens the desk, does something there, and closes it.
func (f *deskFlags) at(ctx context.Context, world *process, do func(server.Desk) error) error {
	desk, err := f.open(ctx, world)
	if err != nil {
		return err
	}
	return errors.Join(do(desk.With(f.Notes)), desk.Close(ctx))
}

// ask calls one of our tools. A tool that failed is an error here.
func (f *deskFlags) ask(ctx context.Context, world *process, name string, args any) (view tool.View, err error) {
	err = f.at(ctx, world, func(desk server.Desk) error {
		view, err = callTool(ctx, world, desk, name, args)
		return err
	})
	return view, err
}

func callTool(ctx context.Context, world *process, desk server.Desk, name string, args any) (tool.View, error) {
	shown := newLive(world)
	view, err := desk.Call(ctx, name, args, shown.caller())
	shown.end()
	if err != nil {
		return view, err
	}
	if view.IsError {
		return view, fault.New(fault.Upstream, "%s", view.Text())
	}
	return view, nil
}

// print writes the answer: as JSON, or as the text for people.
func (f *deskFlags) print(world *process, view tool.View) error {
	if f.JSON {
		return printJSON(world.Stdout, view.Value())
	}
	_, err := fmt.Fprintln(world.Stdout, view.Text())
	return err
}

func printJSON(w io.Writer, raw json.RawMessage) error {
	var indented strings.Builder
	encoder := json.NewEncoder(&indented)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(raw); err != nil {
		return err
	}
	_, err := io.WriteString(w, indented.String())
	return err
}

// table prints rows in columns, cut to the terminal's width.
func table(world *process, head []string, rows [][]string) error {
	width := terminalWidth(world.Stdout)
	var text strings.Builder
	columns := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, strings.Join(head, "\t"))
	for _, row := range rows {
		fmt.Fprintln(columns, strings.Join(row, "\t"))
	}
	if err := columns.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		line = strings.TrimRight(line, " \n")
		if r := []rune(line); width > 0 && len(r) > width {
			line = string(r[:width-1]) + "…"
		}
		fmt.Fprintln(world.Stdout, line)
	}
	return nil
}

// terminalWidth is 0 when nobody is looking.
func terminalWidth(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil || width == 0 { // a terminal that does not know
		return 80
	}
	return width
}

// spin turns a wheel on a terminal's standard error until stop is called.
func spin(world *process, doing string) (stop func()) {
	if terminalWidth(world.Stderr) == 0 {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-tick.C:
				fmt.Fprintf(world.Stderr, "\r%c %s", []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")[i%10], doing)
			case <-done:
				fmt.Fprintf(world.Stderr, "\r%*s\r", len(doing)+2, "")
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}
