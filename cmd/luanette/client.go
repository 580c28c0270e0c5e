package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/access/owner"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/attach"
	"github.com/luanette/luanette/internal/server"
)

// clientFlags are the flags of every command that uses our tools, of a running
// server or of one in this process.
type clientFlags struct {
	settingFlags
	Server string `short:"s" placeholder:"URL" help:"Use the running server at this URL, such as http://127.0.0.1:8081."`
	tokenFlag
	JSON bool          `help:"Print JSON."`
	Wait time.Duration `default:"30s" help:"How long to wait for the upstreams that the command needs, and for a server to respond."`

	Archive bool           `kong:"-"` // the command reads jobs
	Notes   map[string]any `kong:"-"` // added to the _meta of its calls
}

// tokenFlag is the API key for a running server.
type tokenFlag struct {
	Key    string `placeholder:"TOKEN" help:"API key of the server; better set LUANETTE_KEY, which process lists do not show."`
	CAFile string `name:"ca-file" type:"path" placeholder:"FILE" help:"PEM file with the certificate authority of the server (default: ca_file of the configuration)."`
}

// access returns the key, or the token of the login at the server, and the certificate
// authority for an https address.
func (f tokenFlag) access(ctx context.Context, proc *process, settings *settingFlags, address string) client.Access {
	access := client.Access{Key: f.token(proc), CAFile: authorityFile(proc, settings, f.CAFile, address)}
	if access.Key.IsZero() {
		token, err := signIns(proc).Token(ctx, address, access)
		if err != nil { // the server may not need it
			fmt.Fprintf(proc.Stderr, "warning: the login at %s is not used: %v\n", address, err)
		}
		access.Key = token
	}
	if access.Key.IsZero() {
		access.Key = ownerSecret(ctx, proc, settings, address)
	}
	return access
}

// ownerSecret returns the owner's secret for a server of this machine, if it runs on our data
// folder. Whatever else listens at the address does not get it.
func ownerSecret(ctx context.Context, proc *process, settings *settingFlags, address string) secret.Text {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	at, err := url.Parse(address)
	if err != nil || !netguard.IsLoopback(at.Hostname()) {
		return secret.Text{}
	}
	loaded, err := settings.loadQuietly(proc, nil)
	if err != nil { // commands with --server need no configuration
		return secret.Text{}
	}
	if _, err := attach.At(ctx, placeOf(loaded, proc.Env), at.Port()); err != nil {
		return secret.Text{}
	}
	own, err := owner.Read(loaded.Data)
	if err != nil {
		fmt.Fprintf(proc.Stderr, "warning: the owner's secret is not used: %v\n", err)
	}
	return own
}

// authorityFile is the file with the certificate authority of a server; empty: one of the
// system.
func authorityFile(proc *process, settings *settingFlags, given, address string) string {
	file := cmp.Or(given, proc.Env["LUANETTE_CA_FILE"])
	if file == "" && strings.HasPrefix(address, "https://") {
		if loaded, err := settings.read(proc, nil); err == nil { // commands with --server need no configuration
			file = loaded.CAFile
		}
	}
	return file
}

// token returns the key of the flag or of the environment.
func (f tokenFlag) token(proc *process) secret.Text {
	return secret.New(cmp.Or(f.Key, proc.Env["LUANETTE_KEY"], proc.Env["ENGINE_API_KEY"]))
}

// open connects to the server that --server names, or builds one in this process, which
// starts upstreams when they are used.
func (f *clientFlags) open(ctx context.Context, proc *process) (client.Client, error) {
	if f.Server != "" {
		defer reportWaiting(proc, waitingForConnection(f.Server))()
		access := f.access(ctx, proc, &f.settingFlags, f.Server)
		return client.Connect(ctx, f.Server, client.Options{Version: version, Key: access.Key, CAFile: access.CAFile, Wait: f.Wait})
	}
	loaded, err := f.load(proc, nil)
	if err != nil {
		return nil, err
	}
	options := server.Options{Version: version, Stderr: io.Discard, Env: proc.Env, Archive: f.Archive, OnDemand: true}
	if f.LogLevel != nil {
		options.Stderr = proc.Stderr
	}
	loaded.TuneCollector(proc.Env)
	srv, err := server.Build(ctx, loaded, options)
	if err != nil {
		return nil, err
	}
	return client.Local(srv, f.Wait), nil
}

// withClient opens a client, passes it to do and closes it.
func (f *clientFlags) withClient(ctx context.Context, proc *process, do func(client.Client) error) error {
	api, err := f.open(ctx, proc)
	if err != nil {
		return err
	}
	stop := reportWaiting(proc, api.Waiting)
	err = do(api.With(f.Notes))
	stop()
	return errors.Join(err, api.Close(ctx))
}

// call calls one of our tools and returns an error if the tool failed.
func (f *clientFlags) call(ctx context.Context, proc *process, name string, args any) (view tool.View, err error) {
	err = f.withClient(ctx, proc, func(api client.Client) error {
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

// callAndPrint calls one of our tools and prints its result.
func (f *clientFlags) callAndPrint(ctx context.Context, proc *process, name string, args map[string]any) error {
	view, err := f.call(ctx, proc, name, args)
	if err != nil {
		return err
	}
	return f.print(proc, view)
}

// callAndPrintID calls one of our tools that creates something. On a terminal it prints the
// result; otherwise only the id, which is the first of the fields that is present.
func (f *clientFlags) callAndPrintID(ctx context.Context, proc *process, name string, args map[string]any, ids ...string) error {
	view, err := f.call(ctx, proc, name, args)
	if err != nil {
		return err
	}
	return f.printID(proc, view, ids...)
}

// printID prints the result of a tool that created something, or only its id.
func (f *clientFlags) printID(proc *process, view tool.View, ids ...string) error {
	if f.JSON || terminalWidth(proc.Stdout) > 0 {
		return f.print(proc, view)
	}
	fmt.Fprintln(proc.Stderr, view.Text())
	for _, id := range ids {
		if text, ok := rawjson.GetText(view.Structured, id); ok {
			_, err := fmt.Fprintln(proc.Stdout, text)
			return err
		}
	}
	return fault.New(fault.Upstream, "the server's result has no id").WithHint("the server may have another version; --json prints the whole result")
}

// admin sends a request to the admin API and decodes the response.
func (f *clientFlags) admin(ctx context.Context, proc *process, method, path string, body, into any) (raw json.RawMessage, err error) {
	err = f.withClient(ctx, proc, func(api client.Client) error {
		raw, err = adminRequest(ctx, api, method, path, body, into)
		return err
	})
	return raw, err
}

func adminRequest(ctx context.Context, api client.Client, method, path string, body, into any) (json.RawMessage, error) {
	raw, err := api.Admin(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return nil, fault.Wrap(fault.Upstream, err, "read the server's response")
	}
	return raw, nil
}

// print writes a result as text, or as JSON with --json.
func (f *clientFlags) print(proc *process, view tool.View) error {
	if f.JSON {
		return printJSON(proc.Stdout, view.Value())
	}
	_, err := fmt.Fprintln(proc.Stdout, strings.TrimSuffix(view.Text(), "\n"))
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

// printValue prints a value as indented JSON.
func printValue(proc *process, v any) error {
	raw, err := tool.Encode(v)
	if err != nil {
		return err
	}
	return printJSON(proc.Stdout, raw)
}
