package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// TestCommandLinePage checks that docs/cli.md matches the commands; UPDATE=1 rewrites it.
func TestCommandLinePage(t *testing.T) {
	t.Parallel()
	const path = "../../docs/cli.md"
	page := commandLinePage(parserOf(t, new(cli), io.Discard).Model)
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, "docs/cli.md") != page {
		t.Error("docs/cli.md does not match the commands; run `UPDATE=1 go test ./cmd/luanette -run TestCommandLinePage`")
	}
}

func commandLinePage(app *kong.Application) string {
	var out strings.Builder
	out.WriteString(`# Command line

Every command with its arguments and flags, as ` + "`luanette help`" + ` and a command with ` + "`--help`" + ` show them. This page is generated.

- Commands that use tools, scripts and stored data work without a server: they read the data folder and start only the upstreams that they use. With ` + "`--server URL`" + ` they use a running server. Jobs run in a server, so ` + "`luanette job`" + ` always uses one.
- Results go to standard output; progress, logs and problems to standard error. ` + "`--json`" + ` prints results as JSON. A command that waits for an upstream says for which and since when.
- Ids of jobs, schedules and approvals and hashes of scripts may be shortened to any beginning that is unique.
- Tables fit the terminal. Elsewhere every row is one line. Colours are used only on a terminal, and not with ` + "`--no-color` or `NO_COLOR=1`" + `.
- ` + "`luanette completion bash`" + ` (zsh, fish) prints a script that completes commands, flags and stored names.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | it failed; the message says why |
| 2 | the command line or the configuration is wrong |
| 3 | a script waits for approval |
| 4 | the server of a job that was followed has ended; the job continues when it is back |
| 130 | interrupted; a job that was followed continues |

## Common flags
`)
	leaves := app.Leaves(true)
	for _, set := range slices.Backward(flagSets) {
		out.WriteString("\n" + set.about + "\n\n")
		writeFlagTable(&out, commonFlags(leaves, strings.Fields(set.flags)))
	}
	group := ""
	for _, leaf := range leaves {
		if title := strings.TrimSuffix(leaf.ClosestGroup().Title, ":"); title != group {
			group = title
			fmt.Fprintf(&out, "\n## %s\n", group)
		}
		writeCommand(&out, leaf)
	}
	return out.String()
}

// commonFlags finds flags by name in any of the commands.
func commonFlags(leaves []*kong.Node, names []string) (flags []*kong.Flag) {
	for _, name := range names {
		for _, leaf := range leaves {
			all := slices.Concat(leaf.AllFlags(true)...)
			if at := slices.IndexFunc(all, func(f *kong.Flag) bool { return f.Name == name }); at >= 0 {
				flags = append(flags, all[at])
				break
			}
		}
	}
	return flags
}

func writeCommand(out *strings.Builder, leaf *kong.Node) {
	fmt.Fprintf(out, "\n### luanette %s\n\n    luanette %s\n\n%s\n", strings.Join(pathTo(leaf), " "), leaf.Summary(), leaf.Help)
	if leaf.Detail != "" {
		out.WriteString("\n" + detailText(leaf.Detail) + "\n")
	}
	if len(leaf.Positional) > 0 {
		out.WriteString("\n| argument | meaning |\n|---|---|\n")
		for _, argument := range leaf.Positional {
			fmt.Fprintf(out, "| `%s` | %s |\n", cellText(argument.Summary()), cellText(argument.Help))
		}
	}
	var own []*kong.Flag
	var sets []string
	all := slices.Concat(leaf.AllFlags(true)...)
	for _, flag := range all {
		set := setOf(flag, all)
		switch {
		case set < 0:
			own = append(own, flag)
		case flagSets[set].name != "every command" && !slices.Contains(sets, flagSets[set].name):
			sets = append(sets, flagSets[set].name)
		}
	}
	if len(own) > 0 {
		out.WriteString("\n")
		writeFlagTable(out, own)
	}
	if len(sets) > 0 {
		fmt.Fprintf(out, "\nAlso the flags for the %s.\n", strings.Join(sets, " and the "))
	}
}

func writeFlagTable(out *strings.Builder, flags []*kong.Flag) {
	out.WriteString("| flag | meaning |\n|---|---|\n")
	for _, flag := range flags {
		fmt.Fprintf(out, "| `%s` | %s |\n", cellText(flag.String()), cellText(flag.Help))
	}
}

// detailText returns the detailed help, whose examples are indented by two spaces, as
// Markdown.
func detailText(detail string) string {
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(detail)) {
		line = strings.TrimRight(line, " \n")
		if strings.HasPrefix(line, "  ") {
			line = "  " + line
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// cellText writes a text for a cell of a Markdown table.
func cellText(text string) string { return strings.ReplaceAll(text, "|", "\\|") }
