package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// report is the page about all scores.
func report(scores []score, tasks []taskScore) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Conformance

Made by `+"`make conformance`"+`: the official suite (%s)
against the hub's own server, against the reference server of the Go SDK, and
against the same server **through** the hub at `+"`/mcp/{namespace}`"+`, with both eras on
both sides. The numbers are checks of the scenarios that a revision requires; those of
scenarios that are not required yet are in parentheses. The tasks extension is counted
separately below.

The reference server without the hub is included for comparison. It serves one era at a
time: its legacy form does not support 2026-07-28 and fails it, except through the hub.

`, strings.TrimPrefix(suitePackage, "@modelcontextprotocol/"))
	table(&b, scores)
	taskTable(&b, tasks)
	for _, s := range scores {
		if s.subject.kind != alone {
			details(&b, s, scores)
		}
	}
	return b.Bytes()
}

func table(b *bytes.Buffer, scores []score) {
	fmt.Fprintf(b, "| server | %s |\n|---|%s\n", strings.Join(revisions, " | "), strings.Repeat("---|", len(revisions)))
	for row := range slices.Chunk(scores, len(revisions)) {
		fmt.Fprintf(b, "| %s |", row[0].subject.name)
		for _, s := range row {
			fmt.Fprintf(b, " %d passed, %d failed (%d, %d) |", s.passed, s.failed, s.extraPassed, s.extraFailed)
		}
		b.WriteByte('\n')
	}
}

// taskTable shows the results for the tasks extension.
func taskTable(b *bytes.Buffer, scores []taskScore) {
	b.WriteString("\nThe tasks extension on the hub's own server, and through the hub with that server as upstream (`make conformance-tasks`):\n\n| server | tasks |\n|---|---|\n")
	for _, s := range scores {
		fmt.Fprintf(b, "| %s | %d passed, %d failed |\n", s.subject.name, s.passed, s.failed)
	}
}

// details names every failure and warning of a score with its cause.
func details(b *bytes.Buffer, s score, all []score) {
	if len(s.failures)+len(s.warnings) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s, %s\n\n", strings.ToUpper(s.subject.name[:1])+s.subject.name[1:], s.revision)
	for _, f := range s.failures {
		fmt.Fprintf(b, "- **%s**, %s: %s\n", f.scenario, f.check, cause(s, f, all))
	}
	for _, f := range s.warnings {
		fmt.Fprintf(b, "- %s, %s (a warning): %s\n", f.scenario, f.check, cause(s, f, all))
	}
}

// causes explain the failures that are due to an upstream of the sessions era.
var causes = map[string]string{
	"sep-2322-elicitation-incomplete": "a legacy server asks with a request that has no key, so the hub makes one up; the suite expects the key of the tool's source",
	"sep-2322-ignore-unexpected-params": "a question of a legacy server has no key, so the hub cannot assign an answer that is sent before the question; " +
		"it asks the client",
	"sep-2322-multi-round-r2": "the reference server asks a legacy client only once; it returns the second question as a finished result, which the hub passes on",
	"sep-2575-server-rejects-undeclared-capability": "a legacy server learns the capabilities once per session, and the hub's session declares all that it relays; " +
		"the tool checks the declaration and does not ask. If it asked, the hub would refuse",
	"sep-2575-missing-capability-http-400": "follows from the failure before",
}

// cause is the cause of a failure: our explanation, that it fails without the hub too, or
// the message of the suite.
func cause(s score, f failure, all []score) string {
	if known, ok := causes[f.check]; ok && s.subject.kind == through && s.subject.era == legacy {
		return known
	}
	for _, other := range all {
		if other.subject.kind == alone && other.subject.era == s.subject.era && other.revision == s.revision &&
			slices.ContainsFunc(other.failures, func(g failure) bool { return g.scenario == f.scenario && g.check == f.check }) {
			return "the reference server fails this without the hub too: " + f.reason
		}
	}
	return strings.Join(strings.Fields(f.reason), " ")
}
