package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// report is the page about all scores.
func report(scores []score) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Conformance

Made by `+"`make conformance`"+`: the official suite (%s)
against the hub's own server, against the reference server of the Go SDK, and
against that same server **through** the hub at `+"`/mcp/{namespace}`"+`, with both eras on
both sides. Counted are the checks of the scenarios that a revision requires; in
brackets those of scenarios that are not required yet. The tasks extension is
counted by itself below; through the hub an upstream's own tasks are not relayed.

The reference server without the hub stands here for comparison: it serves one
era at a time. Its legacy form fails 2026-07-28 as it does not speak it; through
the hub it does.

`, strings.TrimPrefix(suitePackage, "@modelcontextprotocol/"))
	table(&b, scores)
	if own, ok := tasksOf(scores); ok {
		fmt.Fprintf(&b, "\nThe tasks extension on the hub's own server: %d passed, %d failed.\n", own.tasksPassed, own.tasksFailed)
	}
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

// causes explain what fails only because a server of the older era stands behind
// the hub.
var causes = map[string]string{
	"sep-2322-elicitation-incomplete": "an older server asks by a request that has no name, so the hub has to make one up; the suite wants the one from the tool's source",
	"sep-2322-ignore-unexpected-params": "an older server's question has no name, so an answer sent before it is asked cannot be known to belong to it; " +
		"the hub asks",
	"sep-2322-multi-round-r2": "the reference server asks an older client only once; its second question comes out as a finished result, and the hub passes that on",
	"sep-2575-server-rejects-undeclared-capability": "an older server learns capabilities once per session, and the hub's session declares all it relays; " +
		"the tool looks at the declaration and does not ask. Had it asked, the hub had refused",
	"sep-2575-missing-capability-http-400": "follows from the one before",
}

// cause is what is known about a failure: our explanation, that it is the same
// without the hub, or else what the suite said.
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
