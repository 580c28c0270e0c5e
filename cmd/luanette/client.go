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
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/server"
)

// clientFlags are the flags of every command that uses our tools, of a running
// server or of one in this process.
type clientFlags struct {
	settingFlags
	Server string `short:"s" placeholder:"URL" help:"Use the running server at this URL, such as http://127.0.0.1:8081."`
	tokenFlag
	JSON bool          `help:"Print JSON."`
	Wait time.Duration `default:"30s" help:"How long to wait for slow upstreams, and for a server to respond."`

	Archive bool           `kong:"-"` // the command reads jobs
	Notes   map[string]any `kong:"-"` // added to the _meta of its calls
}

// tokenFlag is the API key for a running server.
type tokenFlag struct {
	Key string `placeholder:"TOKEN" help:"API key of the server; better set LUANETTE_KEY, which process lists do not show."`
}

// token returns the key of the flag or of the environment.
func (f tokenFlag) token(proc *process) secret.Text {
	return secret.New(cmp.Or(f.Key, proc.Env["LUANETTE_KEY"], proc.Env["ENGINE_API_KEY"]))
}

// open connects to the server that --server names, or builds one in this process. A
// spinner is shown on a terminal meanwhile.
func (f *clientFlags) open(ctx context.Context, proc *process) (client.Client, error) {
	defer spin(proc, "connecting")()
	if f.Server != "" {
		return client.Connect(ctx, f.Server, client.Options{Version: version, Key: f.token(proc), Wait: f.Wait})
	}
	loaded, err := f.load(proc, nil)
	if err != nil {
		return nil, err
	}
	options := server.Options{Version: version, Stderr: io.Discard, Env: proc.Env, Archive: f.Archive}
	if f.LogLevel != nil {
		options.Stderr = proc.Stderr
	}
	config.TuneCollector(loaded.GCPercent, proc.Env)
	srv, err := server.Build(ctx, loaded, options)
	if err != nil {
		return nil, err
	}
	return client.Local(ctx, srv, f.Wait), nil
}

// at opens a client, passes it to do and closes it.
func (f *clientFlags) at(ctx context.Context, proc *process, do func(client.Client) error) error {
	api, err := f.open(ctx, proc)
	if err != nil {
		return err
	}
	return errors.Join(do(api.With(f.Notes)), api.Close(ctx))
}

// ask calls one of our tools and returns an error if the tool failed.
func (f *clientFlags) ask(ctx context.Context, proc *process, name string, args any) (view tool.View, err error) {
	err = f.at(ctx, proc, func(api client.Client) error {
		view, err = callTool(ctx, proc, api, name, args)
		return err
	})
	return view, err
}

func callTool(ctx context.Context, proc *process, api client.Client, name string, args any) (tool.View, error) {
	shown := newLive(proc)
	view, err := api.Call(ctx, name, args, shown.caller())
	shown.end()
	if err != nil {
		return view, err
	}
	if view.IsError {
		return view, fault.New(fault.Upstream, "%s", view.Text())
	}
	return view, nil
}

// print writes a result as text, or as JSON with --json.
func (f *clientFlags) print(proc *process, view tool.View) error {
	if f.JSON {
		return printJSON(proc.Stdout, view.Value())
	}
	_, err := fmt.Fprintln(proc.Stdout, view.Text())
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
func table(proc *process, head []string, rows [][]string) error {
	width := terminalWidth(proc.Stdout)
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
		fmt.Fprintln(proc.Stdout, line)
	}
	return nil
}

// terminalWidth returns 0 if w is not a terminal.
func terminalWidth(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil || width == 0 { // the terminal does not report it
		return 80
	}
	return width
}

// spin shows a spinner on standard error, if it is a terminal, until stop is called.
func spin(proc *process, doing string) (stop func()) {
	if terminalWidth(proc.Stderr) == 0 {
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
				fmt.Fprintf(proc.Stderr, "\r%c %s", []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")[i%10], doing)
			case <-done:
				fmt.Fprintf(proc.Stderr, "\r%*s\r", len(doing)+2, "")
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}
