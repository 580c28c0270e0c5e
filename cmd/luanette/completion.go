package main

import (
	"context"
	"embed"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/config"
)

// completionCommand is `luanette completion`.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help is shown by `luanette completion --help`.
func (completionCommand) Help() string {
	return `The script completes commands and flags, and the names of tools, upstreams, jobs,
scripts, schedules and approvals. It reads stored data and never starts an upstream.

  source <(luanette completion bash)                              # in ~/.bashrc
  source <(luanette completion zsh)                               # in ~/.zshrc, after compinit
  luanette completion fish > ~/.config/fish/completions/luanette.fish`
}

//go:embed completion
var completionScripts embed.FS

// Run prints the script for the shell.
func (c *completionCommand) Run(proc *process) error {
	script, err := completionScripts.ReadFile("completion/luanette." + c.Shell)
	if err != nil {
		return err
	}
	_, err = proc.Stdout.Write(script)
	return err
}

// completeCommand is `luanette __complete`, which the scripts call.
type completeCommand struct {
	Words []string `arg:"" optional:"" passthrough:"" help:"The words after luanette up to the cursor; the last one is completed."`
}

// completionTimeout ends the wait for a server that does not answer. A person who waits on a
// busy machine can interrupt sooner.
const completionTimeout = 10 * time.Second

// filesToo is printed after the candidates if names of files are candidates too.
const filesToo = ":files"

// Run prints the candidates for the last word, each with a tab and a description.
func (c *completeCommand) Run(ctx context.Context, proc *process) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	at := findCursor(newParser(ctx, &process{Stdout: io.Discard, Stderr: io.Discard}, new(cli), func(int) {}).Model.Node, words)
	candidates, files := at.candidates(ctx, proc)
	for _, candidate := range candidates {
		if strings.HasPrefix(candidate.Value, at.word) {
			fmt.Fprintf(proc.Stdout, "%s\t%s\n", candidate.Value, short(plainText(candidate.About), 80))
		}
	}
	if files {
		fmt.Fprintln(proc.Stdout, filesToo)
	}
	return nil
}

// cursor is the place of the word to complete in a command line.
type cursor struct {
	word   string
	node   *kong.Node
	value  *kong.Value       // the argument or the flag's value that the word is; nil for others
	prefix string            // --flag= before the value in the same word
	flags  map[string]string // the values of the flags before it, by name
	used   int               // arguments before it
	rest   bool              // after --
}

// findCursor walks through the words of a command line.
func findCursor(root *kong.Node, words []string) *cursor {
	c := &cursor{node: root, flags: map[string]string{}}
	for _, word := range words[:len(words)-1] {
		c.step(word)
	}
	c.word = words[len(words)-1]
	isFlag := !c.rest && strings.HasPrefix(c.word, "-")
	switch {
	case c.value != nil:
	case isFlag:
		c.assignment()
	case c.node.Leaf():
		c.value = c.argument()
	}
	return c
}

// assignment finds the flag of a word such as --flag=value.
func (c *cursor) assignment() {
	name, _, ok := strings.Cut(c.word, "=")
	if flag := c.flag(name); ok && flag != nil {
		c.value, c.prefix = flag.Value, name+"="
	}
}

// step passes one complete word.
func (c *cursor) step(word string) {
	switch {
	case c.value != nil && word == "=": // bash makes it a word of its own
	case c.value != nil:
		c.flags[c.value.Name], c.value = word, nil
	case c.rest:
		c.used++
	case word == "--":
		c.rest = true
	case strings.HasPrefix(word, "-"):
		name, value, given := strings.Cut(word, "=")
		if flag := c.flag(name); flag != nil && given {
			c.flags[flag.Name] = value
		} else if flag != nil && !flag.IsBool() {
			c.value = flag.Value
		}
	default:
		c.argumentOrCommand(word)
	}
}

func (c *cursor) argumentOrCommand(word string) {
	for _, child := range c.node.Children {
		if child.Name == word {
			c.node, c.used = child, 0
			return
		}
	}
	c.used++
}

// flag returns the flag of that name, such as --server or -s.
func (c *cursor) flag(name string) *kong.Flag {
	for _, flag := range slices.Concat(c.node.AllFlags(true)...) {
		if name == "--"+flag.Name || flag.Short != 0 && name == "-"+string(flag.Short) {
			return flag
		}
	}
	return nil
}

// argument returns the argument that the next word is, or nil.
func (c *cursor) argument() *kong.Value {
	arguments := c.node.Positional
	if len(arguments) == 0 {
		return nil
	}
	last := arguments[len(arguments)-1]
	switch {
	case c.used < len(arguments):
		return arguments[c.used]
	case last.IsCumulative():
		return last
	}
	return nil
}

// candidates returns what the word may be, and whether it may be the name of a file.
func (c *cursor) candidates(ctx context.Context, proc *process) (list []client.Name, files bool) {
	switch {
	case c.value != nil:
		list, files = c.values(ctx, proc)
		for i := range list {
			list[i].Value = c.prefix + list[i].Value
		}
		return list, files
	case strings.HasPrefix(c.word, "-") && !c.rest:
		for _, flag := range slices.Concat(c.node.AllFlags(true)...) {
			list = append(list, client.Name{Value: "--" + flag.Name, About: flag.Help})
		}
	default:
		for _, child := range c.node.Children {
			if !child.Hidden {
				list = append(list, client.Name{Value: child.Name, About: child.Help})
			}
		}
	}
	return list, false
}

// values returns the values that an argument or a flag may have.
func (c *cursor) values(ctx context.Context, proc *process) (list []client.Name, files bool) {
	kind := c.value.Tag.Get("complete")
	switch {
	case c.value.Enum != "":
		for _, value := range c.value.EnumSlice() {
			if value != "" {
				list = append(list, client.Name{Value: value})
			}
		}
		return list, false
	case kind == "file" || c.value.Tag.Type == "path":
		return nil, true
	case kind == "":
		return nil, false
	}
	list, err := c.stored(ctx, proc, client.NameKind(kind))
	if err != nil && proc.Env["LUANETTE_COMPLETE_DEBUG"] != "" {
		printError(proc, err)
	}
	return list, kind == "script" && c.node.Name != "describe"
}

// stored returns names from the data folder, or from the server that the command line
// names.
func (c *cursor) stored(ctx context.Context, proc *process, kind client.NameKind) ([]client.Name, error) {
	flags := clientFlags{Server: c.flags["server"], Archive: true, Wait: completionTimeout}
	flags.Config, flags.Key = c.flags["config"], c.flags["key"]
	for name, field := range map[string]**string{"data": &flags.Data, "database": &flags.Database} {
		if value, ok := c.flags[name]; ok {
			*field = &value
		}
	}
	if flags.Server == "" {
		loaded, err := flags.load(proc, nil)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(loaded.Data); err != nil { // completing should not create the folder
			return configuredNames(loaded, proc, kind), nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	var list []client.Name
	err := flags.withClient(ctx, &process{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard, Env: proc.Env}, func(api client.Client) (err error) {
		list, err = client.Names(ctx, api, kind, false)
		return err
	})
	return list, err
}

// configuredNames returns the names that the configuration alone has.
func configuredNames(loaded *config.Loaded, proc *process, kind client.NameKind) (list []client.Name) {
	specs, _, err := loaded.UpstreamSpecs(proc.Env)
	if err != nil || kind != client.UpstreamNames {
		return nil
	}
	for i := range specs {
		list = append(list, client.Name{Value: specs[i].Name, About: specs[i].Target()})
	}
	return list
}
