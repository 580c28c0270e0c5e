package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/base/commandline"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/plural"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/typedecl"
)

// toolsCommand is `luanette tools`.
type toolsCommand struct {
	clientFlags
	Query     []string `arg:"" optional:"" help:"Words that describe the tool, or the name of one as NAMESPACE.TOOL, which is shown with its parameters; lists all tools if omitted."`
	Namespace string   `short:"n" placeholder:"NS" complete:"upstream" help:"Only tools of this upstream."`
	Limit     int      `default:"20" help:"Maximum number of matches."`
	refreshFlag
	Forget string `enum:",mine,all" default:"" placeholder:"WHOSE" help:"Erase what searches have learned from calls instead: mine, or all of all callers."`
}

// Help is shown by `luanette tools --help`.
func (toolsCommand) Help() string {
	return `The list is the same as in search_tools; a name is shown with its parameters.

  luanette tools                       list all
  luanette tools add two numbers       search
  luanette tools everything.get-sum    show one with its parameters`
}

// refreshFlag asks for current lists of tools.
type refreshFlag struct {
	Refresh bool `help:"Connect every upstream and use its current list. Otherwise lists of earlier connections are used, and only upstreams without one are connected."`
}

// refresh connects every upstream if the flag was given. A running server has connected
// them already.
func (f refreshFlag) refresh(ctx context.Context, proc *process, api client.Client) error {
	if !f.Refresh {
		return nil
	}
	_, err := callTool(ctx, proc, api, "mcp_list_upstreams", struct{}{})
	return err
}

// Run lists or searches the tools of all upstreams.
func (c *toolsCommand) Run(ctx context.Context, proc *process) error {
	if c.Forget != "" {
		return c.forget(ctx, proc)
	}
	if len(c.Query) > 0 {
		if shown, err := c.show(ctx, proc); shown || err != nil {
			return err
		}
		return c.search(ctx, proc)
	}
	return c.list(ctx, proc)
}

// forget erases what was learned.
func (c *toolsCommand) forget(ctx context.Context, proc *process) error {
	path := "/api/v1/search/learned"
	if c.Forget == "all" {
		path += "/all"
	}
	var answer struct{ Forgotten int }
	raw, err := c.admin(ctx, proc, http.MethodDelete, path, nil, &answer)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(proc.Stdout, raw)
	}
	fmt.Fprintf(proc.Stdout, "forgot %s of searches\n", plural.Count(answer.Forgotten, "word"))
	return nil
}

// show prints the tool with its parameters if the query is exactly its name.
func (c *toolsCommand) show(ctx context.Context, proc *process) (shown bool, err error) {
	name := c.Query[0]
	if len(c.Query) > 1 || !strings.Contains(name, ".") {
		return false, nil
	}
	c.Archive = true
	view, err := c.call(ctx, proc, "get_tool_definitions", map[string]any{"names": []string{name}})
	if err != nil {
		return false, err
	}
	var answer struct{ Tools []shownTool }
	if err := json.Unmarshal(view.Structured, &answer); err != nil {
		return false, fault.Wrap(fault.Upstream, err, "read definition of %s", name)
	}
	if len(answer.Tools) == 0 {
		return false, nil
	}
	if c.JSON {
		return true, c.print(proc, view)
	}
	// Without a server this process connects none to show a definition, so that stale means nothing.
	return true, answer.Tools[0].print(proc, c.Server != "")
}

// shownTool is a tool as it is shown to people.
type shownTool struct {
	Name, Description string
	LuaPath           string          `json:"lua_path"`
	Input             json.RawMessage `json:"input_schema"`
	Output            json.RawMessage `json:"output_schema"`
	Learned           json.RawMessage `json:"learned_output_schema"`
	Stale             bool
}

// print shows the tool with a table of its parameters; connected says whether Stale is known.
func (t *shownTool) print(proc *process, connected bool) error {
	fmt.Fprintf(proc.Stdout, "%s\n%s\n\n", t.Name, strings.TrimSpace(plainText(t.Description)))
	required := map[bool]string{true: "yes", false: "no"}
	call := "luanette call " + t.Name
	var rows [][]string
	for _, p := range typedecl.Parameters(t.Input) {
		rows = append(rows, []string{p.Name, p.Type, required[p.Required], p.Description})
		if p.Required {
			call += " " + p.Name + "=…"
		}
	}
	if len(rows) == 0 {
		fmt.Fprintln(proc.Stdout, "It takes no parameters.")
	} else if err := table(proc, []string{"PARAMETER", "TYPE", "REQUIRED", "DESCRIPTION"}, rows); err != nil {
		return err
	}
	fmt.Fprintln(proc.Stdout)
	switch {
	case len(t.Output) > 0:
		fmt.Fprintf(proc.Stdout, "returns:     %s\n", plainText(typedecl.Line(t.Output)))
	case len(t.Learned) > 0:
		fmt.Fprintf(proc.Stdout, "returned:    %s\n", plainText(typedecl.Line(t.Learned)))
	}
	if connected && t.Stale {
		fmt.Fprintln(proc.Stdout, "its server is currently disconnected")
	}
	_, err := fmt.Fprintf(proc.Stdout, "in scripts:  %s{…}\nfrom here:   %s\n", t.LuaPath, plainText(call))
	return err
}

func (c *toolsCommand) search(ctx context.Context, proc *process) error {
	c.Archive = true // finds the tools for jobs too
	args := map[string]any{"query": strings.Join(c.Query, " "), "limit": c.Limit}
	if c.Namespace != "" {
		args["namespace"] = c.Namespace
	}
	var view tool.View
	err := c.withClient(ctx, proc, func(api client.Client) (err error) {
		if err = c.refresh(ctx, proc, api); err == nil {
			view, err = callTool(ctx, proc, api, "search_tools", args)
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.print(proc, view)
}

// list shows every tool. It reads the resource, which has no limit.
func (c *toolsCommand) list(ctx context.Context, proc *process) error {
	var text string
	err := c.withClient(ctx, proc, func(api client.Client) (err error) {
		if err = c.refresh(ctx, proc, api); err == nil {
			text, err = api.Read(ctx, "lua://tools")
		}
		return err
	})
	if err != nil {
		return err
	}
	var listed struct {
		Tools []struct {
			Name, Namespace, Description string
			Flags                        []string
		}
	}
	if err := json.Unmarshal([]byte(text), &listed); err != nil {
		return fault.Wrap(fault.Upstream, err, "read list of tools")
	}
	if c.JSON {
		return printJSON(proc.Stdout, json.RawMessage(text))
	}
	var rows [][]string
	for _, t := range listed.Tools {
		if t.Namespace != "" && (c.Namespace == "" || c.Namespace == t.Namespace) {
			rows = append(rows, []string{t.Namespace + "." + t.Name, flagsText(t.Flags) + firstLine(t.Description)})
		}
	}
	return table(proc, []string{"TOOL", "DESCRIPTION"}, rows)
}

// flagsText returns the flags of a definition in brackets.
func flagsText(flags []string) string {
	if len(flags) == 0 {
		return ""
	}
	return "[" + strings.Join(flags, ", ") + "] "
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// callCommand is `luanette call`.
type callCommand struct {
	clientFlags
	Tool string   `arg:"" complete:"tool" help:"The tool, as NAMESPACE.TOOL."`
	Args []string `arg:"" optional:"" name:"key=value" help:"Arguments: key=value, or key:=JSON."`
	Raw  string   `name:"args" placeholder:"JSON" help:"All arguments as one JSON object; - reads it from standard input."`
}

// Help is shown by `luanette call --help`.
func (callCommand) Help() string {
	return `The tool's schema determines how a value is read: n=4 is a number if the argument
is a number, otherwise a string; tags='["a","b"]' is a list if it is an array, and an
object is written as JSON, too. key:=JSON passes JSON whatever the schema says. A name
with hyphens can be written with underscores: everything.get_sum.

  luanette call everything.get-sum a=2 b=40
  luanette call everything.get-sum --args '{"a": 2, "b": 40}'`
}

// Run calls the tool and prints its result.
func (c *callCommand) Run(ctx context.Context, proc *process) error {
	var view tool.View
	err := c.withClient(ctx, proc, func(api client.Client) error {
		arguments, err := c.arguments(ctx, proc, api)
		if err != nil {
			return err
		}
		view, err = callTool(ctx, proc, api, "call_tool", map[string]any{"name": c.Tool, "arguments": arguments})
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON || view.Text() == "" {
		err = printJSON(proc.Stdout, view.Value())
	} else {
		_, err = fmt.Fprintln(proc.Stdout, view.Text())
	}
	if err == nil && waits(view) {
		err = exitStatus(exitWaiting)
	}
	return err
}

// arguments merges --args and the pairs, which take precedence.
func (c *callCommand) arguments(ctx context.Context, proc *process, api client.Client) (map[string]json.RawMessage, error) {
	arguments := map[string]json.RawMessage{}
	if c.Raw != "" {
		text := []byte(c.Raw)
		if c.Raw == "-" {
			read, err := io.ReadAll(proc.Stdin)
			if err != nil {
				return nil, err
			}
			text = read
		}
		if err := json.Unmarshal(text, &arguments); err != nil {
			return nil, fault.Wrap(fault.InvalidParams, rawjson.InWords(err), "read --args").WithHint(`it must be a JSON object, such as {"n": 4}`)
		}
	}
	if len(c.Args) == 0 {
		return arguments, nil
	}
	types, err := argumentTypes(ctx, proc, api, c.Tool)
	if err != nil {
		return nil, err
	}
	for _, pair := range c.Args {
		key, value, err := commandline.Pair(pair, func(key string) string { return types[key] })
		if err != nil {
			return nil, err
		}
		arguments[key] = value
	}
	return arguments, nil
}

// argumentTypes returns the types in the tool's schema, without arguments that have
// several.
func argumentTypes(ctx context.Context, proc *process, api client.Client, name string) (map[string]string, error) {
	view, err := callTool(ctx, proc, api, "get_tool_definitions", map[string]any{"names": []string{name}})
	if err != nil {
		return nil, err
	}
	var answer struct {
		Tools []struct {
			Input json.RawMessage `json:"input_schema"`
		}
	}
	if err := json.Unmarshal(view.Structured, &answer); err != nil {
		return nil, fault.Wrap(fault.Upstream, err, "read definition of %s", name)
	}
	types := map[string]string{}
	for _, t := range answer.Tools {
		maps.Copy(types, typedecl.Kinds(t.Input))
	}
	return types, nil
}

// tokensCommand is `luanette tokens`.
type tokensCommand struct {
	clientFlags
	Namespace string `arg:"" optional:"" complete:"upstream" help:"Show each tool of this upstream."`
}

// Help is shown by `luanette tokens --help`.
func (tokensCommand) Help() string {
	return `Shows how many tokens of a model's context the tools take: those of each menu, and
those that each upstream would add if all its tools were listed. The numbers are
estimates; for common tokenizers they are up to 15 percent too high.

The menu is the list of tools that a client sees (mcp.menu, docs/code_mode.md).`
}

// Run prints the costs.
func (c *tokensCommand) Run(ctx context.Context, proc *process) error {
	c.Archive = true // the menus have the tools for jobs too
	var text string
	err := c.withClient(ctx, proc, func(api client.Client) (err error) {
		text, err = api.Read(ctx, "lua://tokens")
		return err
	})
	if err != nil {
		return err
	}
	var costs builtin.TokenCosts
	if err := json.Unmarshal([]byte(text), &costs); err != nil {
		return fault.Wrap(fault.Upstream, err, "read costs of tools")
	}
	if c.Namespace != "" {
		return c.tools(proc, &costs)
	}
	if c.JSON {
		return printJSON(proc.Stdout, json.RawMessage(text))
	}
	return printCosts(proc, &costs)
}

// printCosts shows the menus, and the upstreams if there are any.
func printCosts(proc *process, costs *builtin.TokenCosts) error {
	var menus, upstreams [][]string
	for _, m := range costs.Menus {
		name := m.Name
		if name == costs.Menu {
			name += " *"
		}
		menus = append(menus, append([]string{name}, numbers(m.Tools, m.Own, m.Others, m.Instructions, m.Tokens)...))
	}
	if err := table(proc, []string{"MENU", "TOOLS", "OWN", "OTHERS", "INSTRUCTIONS", "TOKENS"}, menus); err != nil {
		return err
	}
	fmt.Fprintf(proc.Stdout, "\n* is what clients see unless they ask for another: /mcp?menu=full, luanette stdio --menu full.\n")
	if len(costs.Upstreams) == 0 {
		return nil
	}
	for _, u := range costs.Upstreams {
		upstreams = append(upstreams, append([]string{u.Namespace}, numbers(len(u.Tools), u.Tokens)...))
	}
	fmt.Fprintln(proc.Stdout)
	if err := table(proc, []string{"UPSTREAM", "TOOLS", "TOKENS"}, upstreams); err != nil {
		return err
	}
	if apps := costs.Apps; apps.Tools > 0 {
		if _, err := fmt.Fprintf(proc.Stdout, "\nClients that show Apps are listed %s more: %s.\n", plural.Count(apps.Tools, "tool"), plural.Count(apps.Tokens, "token")); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(proc.Stdout, "\nWith every tool listed a client would see %d tokens.\n", costs.All)
	return err
}

func numbers(values ...int) []string {
	all := make([]string, len(values))
	for i, n := range values {
		all[i] = strconv.Itoa(n)
	}
	return all
}

// tools shows the tools of one upstream.
func (c *tokensCommand) tools(proc *process, costs *builtin.TokenCosts) error {
	var known []string
	for _, u := range costs.Upstreams {
		known = append(known, u.Namespace)
		if u.Namespace != c.Namespace {
			continue
		}
		if c.JSON {
			return printValue(proc, u)
		}
		var rows [][]string
		for _, t := range u.Tools {
			rows = append(rows, []string{t.Name, strconv.Itoa(t.Tokens), strconv.Itoa(t.TypeScript)})
		}
		return table(proc, []string{"TOOL", "TOKENS", "AS TYPESCRIPT"}, rows)
	}
	err := fault.New(fault.NotFound, "no upstream %q", c.Namespace)
	if close := suggest.Names(c.Namespace, known, 3); len(close) > 0 {
		return err.WithHint("did you mean %s?", strings.Join(close, " "))
	}
	return err.WithHint("`luanette upstream list` shows them")
}
