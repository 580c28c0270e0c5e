package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/luanette/luanette/internal/access/owner"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/builtin/scripttools"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/attach"
	"github.com/luanette/luanette/internal/server"
	"github.com/luanette/luanette/internal/store/cas"
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
		fmt.Fprintf(proc.Stderr, "warning: the owner's secret is not used: %v\n", err)
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

// runningFlags are the flags of commands that only a running server can answer.
type runningFlags struct {
	settingFlags
	serverFlag
	tokenFlag
	JSON bool `help:"Print JSON."`

	Notes map[string]any `kong:"-"` // added to the _meta of calls
}

// api returns the flags of a client of the server.
func (f *runningFlags) api(ctx context.Context, proc *process) (*clientFlags, error) {
	address, err := f.address(ctx, proc, &f.settingFlags)
	return &clientFlags{settingFlags: f.settingFlags, Server: address, tokenFlag: f.tokenFlag, JSON: f.JSON, Notes: f.Notes}, err
}

// withClient connects to the server, passes the client to do and closes it.
func (f *runningFlags) withClient(ctx context.Context, proc *process, do func(client.Client) error) error {
	flags, err := f.api(ctx, proc)
	if err != nil {
		return err
	}
	return flags.withClient(ctx, proc, do)
}

// request sends a request to the server and decodes the response.
func (f *runningFlags) request(ctx context.Context, proc *process, method, path string, into any) error {
	return f.send(ctx, proc, method, path, nil, into)
}

// send is request with a body.
func (f *runningFlags) send(ctx context.Context, proc *process, method, path string, body, into any) error {
	address, err := f.address(ctx, proc, &f.settingFlags)
	if err != nil {
		return err
	}
	raw, err := client.Request(ctx, address, f.access(ctx, proc, &f.settingFlags, address), method, path, body)
	if err != nil {
		return withoutPeople(path, err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fault.Wrap(fault.Upstream, err, "read the server's response")
	}
	return nil
}

// change sends a request that changes something, and prints what was done, or the server's answer.
func (f *runningFlags) change(ctx context.Context, proc *process, method, path string, body any, done string) error {
	var answer any
	if err := f.send(ctx, proc, method, path, body, &answer); err != nil {
		return err
	}
	if f.JSON {
		return printValue(proc, answer)
	}
	_, err := fmt.Fprintln(proc.Stdout, done)
	return err
}

// toolOf is the tool that a command calls, as its tag says.
func toolOf(k *kong.Context) string { return k.Selected().Tag.Get("tool") }

// toolOfServer is a command that calls a tool of a running server.
type toolOfServer struct{ runningFlags }

// Run calls the tool.
func (c *toolOfServer) Run(ctx context.Context, proc *process, k *kong.Context) error {
	flags, err := c.api(ctx, proc)
	if err != nil {
		return err
	}
	return flags.callAndPrint(ctx, proc, toolOf(k), nil)
}

// open connects to the server that --server names, or builds one in this process, which
// starts upstreams when they are used.
func (f *clientFlags) open(ctx context.Context, proc *process) (client.Client, error) {
	if err := f.asService(ctx, proc, &f.Server); err != nil {
		return nil, err
	}
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

// list calls one of our tools that lists things. It prints the result with --json, otherwise
// it decodes it and lets show print it.
func list[T any](ctx context.Context, proc *process, f *clientFlags, name string, args any, show func(T) error) error {
	view, err := f.call(ctx, proc, name, args)
	if err != nil {
		return err
	}
	if f.JSON {
		return printJSON(proc.Stdout, view.Structured)
	}
	var found T
	if err := json.Unmarshal(view.Structured, &found); err != nil {
		return fault.Wrap(fault.Upstream, err, "read the result of %s", name)
	}
	return show(found)
}

// callAndPrint calls one of our tools and prints its result.
func (f *clientFlags) callAndPrint(ctx context.Context, proc *process, name string, args map[string]any) error {
	view, err := f.call(ctx, proc, name, args)
	if err != nil {
		return err
	}
	return f.print(proc, view)
}

// setGiven adds the arguments that were given to those of a tool.
func setGiven(args map[string]any, given map[string]string) {
	for name, value := range given {
		if value != "" {
			args[name] = value
		}
	}
}

// printID prints the result of a tool that created something. If the output is not a terminal, only
// its id, which is the first of the fields that is present.
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
	return printView(proc, view, f.JSON)
}

func printView(proc *process, view tool.View, asJSON bool) error {
	if asJSON {
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

// byPrefix returns the id that begins with what a person typed. what is the noun for
// errors, and list the command that shows all ids.
func byPrefix(what, typed, list string, all []client.Name) (string, error) {
	var found []client.Name
	for _, c := range all {
		if c.Value == typed {
			return c.Value, nil
		}
		if strings.HasPrefix(c.Value, strings.ToLower(typed)) {
			found = append(found, c)
		}
	}
	switch len(found) {
	case 0:
		return "", fault.New(fault.NotFound, "no %s %s", what, typed).WithHint("`%s` shows them", list)
	case 1:
		return found[0].Value, nil
	}
	const most = 5
	var names []string
	for _, c := range found[:min(len(found), most)] {
		names = append(names, fmt.Sprintf("%s (%s)", c.Value, c.About))
	}
	if more := len(found) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return "", fault.New(fault.InvalidParams, "%d %ss begin with %s", len(found), what, typed).
		WithHint("give more of the id: %s", strings.Join(names, ", "))
}

// uuidLength is the length of a whole id of a job, a schedule or an approval.
const uuidLength = 36

// subject is what a person named by the beginning of its id: the argument of a tool that
// takes the id, what they typed, and how it is found.
type subject struct {
	argument, typed string
	find            func(ctx context.Context, proc *process, api client.Client, typed string) (string, error)
}

// callAbout calls a tool about a subject and prints its result.
func (c *clientFlags) callAbout(ctx context.Context, proc *process, name string, args map[string]any, about subject) error {
	view, err := c.resultAbout(ctx, proc, name, args, about)
	if err != nil {
		return err
	}
	return c.print(proc, view)
}

// resultAbout is callAbout without printing the result.
func (c *clientFlags) resultAbout(ctx context.Context, proc *process, name string, args map[string]any, about subject) (view tool.View, err error) {
	err = c.withClient(ctx, proc, func(api client.Client) (err error) {
		if args[about.argument], err = about.find(ctx, proc, api, about.typed); err != nil {
			return err
		}
		view, err = callTool(ctx, proc, api, name, args)
		return err
	})
	return view, err
}

// idOf returns how what a person gave by the beginning of its id is found. list is the command
// that shows all ids.
func idOf(kind client.NameKind, list string) func(context.Context, *process, client.Client, string) (string, error) {
	return func(ctx context.Context, _ *process, api client.Client, typed string) (string, error) {
		if len(typed) == uuidLength {
			return typed, nil
		}
		all, err := client.Names(ctx, api, kind, true)
		if err != nil {
			return "", err
		}
		return byPrefix(string(kind), typed, list, all)
	}
}

var (
	jobID      = idOf(client.JobNames, "luanette job list")
	scheduleID = idOf(client.ScheduleNames, "luanette job schedule list")
	approvalID = idOf(client.ApprovalNames, "luanette approval list --status any") // or of a remembered decision
)

// looksLikeHash matches the beginning of a hash.
var looksLikeHash = lazyregexp.New(`^[0-9a-fA-F]{4,64}$`)

// scriptHash returns the hash of a stored script that a person gave by its beginning or
// by its name.
func scriptHash(ctx context.Context, proc *process, api client.Client, typed string) (string, error) {
	bare := strings.TrimPrefix(typed, "cas:")
	isHash := looksLikeHash().MatchString(bare)
	if isHash && len(bare) >= cas.MinPrefix {
		return bare, nil
	}
	if hash := publishedHash(ctx, api, typed); hash != "" {
		return hash, nil
	}
	scripts, err := storedScripts(ctx, proc, api)
	if err != nil {
		return "", err
	}
	if hash := named(proc, scripts, typed); hash != "" {
		return hash, nil
	}
	var all []client.Name
	var names []string
	for _, s := range scripts {
		all = append(all, client.Name{Value: s.Hash, About: cmp.Or(s.Name, "no name")})
		names = append(names, s.Name)
	}
	if isHash {
		return byPrefix("script", bare, "luanette script search", all)
	}
	missing := fault.New(fault.NotFound, "%s is neither a file nor the name or hash of a stored script", typed)
	if near := suggest.Names(typed, names, 3); len(near) > 0 {
		return "", missing.WithHint("did you mean %s?", strings.Join(near, " or "))
	}
	return "", missing.WithHint("`luanette script search` shows the stored ones")
}

// publishedHash returns the hash of the current version of a published script, or "".
func publishedHash(ctx context.Context, api client.Client, name string) string {
	view, err := api.Call(ctx, "script_history", map[string]any{"name": name}, nil)
	var history scripttools.PublishedHistory
	if err != nil || view.IsError || json.Unmarshal(view.Structured, &history) != nil {
		return "" // it is not published
	}
	for _, v := range history.Versions {
		if v.Current {
			return v.Hash
		}
	}
	return ""
}

func storedScripts(ctx context.Context, proc *process, api client.Client) (all []scripttools.ScriptView, err error) {
	err = client.Pages(ctx, api, "script_search", map[string]any{"limit": 200}, func(page scripttools.FoundScripts) bool {
		all = append(all, page.Scripts...)
		return true
	})
	return all, err
}

// named returns the hash of the newest script of that name, or "".
func named(proc *process, newestFirst []scripttools.ScriptView, name string) string {
	same := slices.DeleteFunc(slices.Clone(newestFirst), func(s scripttools.ScriptView) bool { return s.Name != name })
	if len(same) == 0 {
		return ""
	}
	if len(same) > 1 {
		fmt.Fprintf(proc.Stderr, "%d stored scripts have the name %s; this is the newest, %s\n", len(same), name, same[0].Hash[:cas.MinPrefix])
	}
	return same[0].Hash
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// scriptFor returns the hash of a script that a person named: a file, which is stored
// first, the name of a stored script, or the beginning of its hash.
func scriptFor(ctx context.Context, proc *process, api client.Client, typed string) (hash string, err error) {
	if typed != "-" && !isFile(typed) {
		return scriptHash(ctx, proc, api, typed)
	}
	source, err := readSource(proc, typed)
	if err != nil {
		return "", err
	}
	args := map[string]any{"content": source}
	if language := storedLanguage(typed); language != "" {
		args["language"] = language
	}
	view, err := callTool(ctx, proc, api, "script_store", args)
	if err != nil {
		return "", err
	}
	var stored struct{ Hash string }
	if err := json.Unmarshal(view.Structured, &stored); err != nil {
		return "", fault.Wrap(fault.Upstream, err, "read result of script_store")
	}
	return stored.Hash, nil
}
