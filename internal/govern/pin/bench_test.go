package pin_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/govern/pin"
)

// Parts of descriptions of real servers.
var (
	verbs     = strings.Fields("create list get update delete search send read write move archive export import merge")
	nouns     = strings.Fields("issue repository file message channel invoice customer event calendar page comment branch release ticket")
	sentences = []string{
		"%s a %s of the account that is connected.",
		"Returns the %[2]s as JSON, with its id, its owner and when it was last changed.",
		"Use this tool when you need to %s more than one %s, and not the one that reads all of them.",
		"Only works within allowed directories; paths outside of them are refused (see https://example.com/docs/%s_%s).",
		"You should pass the id of the %[2]s rather than its name, e.g. `ABC-1234`, as names need not be unique.",
		"Requires the scope %s:%s, and fails with a helpful message without it.",
		"Results are paged: send the cursor of the last answer to get the next %[2]s entries, 100 at most.",
	}
	properties = []string{
		`"%s_id":{"type":"string","description":"The unique identifier of the %[1]s"}`,
		`"limit":{"type":"integer","minimum":1,"maximum":100,"default":20,"description":"How many to return at most"}`,
		`"cursor":{"type":"string","description":"Where to go on, from the answer before"}`,
		`"created_after":{"type":"string","format":"date-time","description":"Only those created after this date (YYYY-MM-DD)"}`,
		`"include_archived":{"type":"boolean","description":"Whether archived ones are returned as well"}`,
		`"labels":{"type":"array","items":{"type":"string"},"description":"Labels that the %s must have, all of them"}`,
		`"sort":{"type":"string","enum":["created","updated","comments"],"description":"What to sort by"}`,
		`"body":{"type":"string","description":"The text of the %s, in Markdown. Mentions and links are resolved."}`,
	}
)

// realistic makes tools like those of real servers, sorted, in some namespaces.
func realistic(n, spaces int) []tool.Info {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(list []string) string { return list[random.IntN(len(list))] }
	tools := make([]tool.Info, n)
	for i := range tools {
		verb, noun := pick(verbs), pick(nouns)
		var text []string
		for range 1 + random.IntN(5) {
			text = append(text, fill(pick(sentences), verb, noun))
		}
		var takes []string
		for _, at := range random.Perm(len(properties))[:3+random.IntN(6)] {
			takes = append(takes, fill(properties[at], noun))
		}
		name := fmt.Sprintf("%s_%s_%d", verb, noun, i/spaces)
		input := `{"type":"object","properties":{` + strings.Join(takes, ",") + `},"required":[],"additionalProperties":false}`
		tools[i] = described(tool.Info{
			Ref:         tool.Ref{Space: fmt.Sprintf("space%02d", i%spaces), Name: name},
			Description: strings.Join(text, " "), Input: json.RawMessage(input),
		})
	}
	slices.SortFunc(tools, func(a, b tool.Info) int { return strings.Compare(a.Ref.String(), b.Ref.String()) })
	return tools
}

// fill writes words into the placeholders of a sentence.
func fill(sentence string, words ...any) string {
	text := fmt.Sprintf(sentence, words...)
	text, _, _ = strings.Cut(text, "%!(EXTRA")
	return text
}

// described gives a tool the definition that an upstream would send.
func described(info tool.Info) tool.Info {
	text, _ := json.Marshal(info.Description)
	info.Raw = json.RawMessage(fmt.Sprintf(`{"name":%q,"description":%s,"inputSchema":%s,"annotations":{"readOnlyHint":true}}`, info.Name, text, info.Input))
	return info
}

// offers benchmarks the check of a list that next has changed.
func offers(b *testing.B, tools []tool.Info, next func(tools []tool.Info, i int) []tool.Info) {
	inner := &listFake{tools: tools}
	g := guard(b, database(b), inner, pin.Options{Own: func() []string { return []string{"lua_eval", "search_tools"} }})
	listed(b, g)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		inner.tools = next(tools, i)
		if _, err := g.Tools(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCheck checks tools in 50 namespaces.
func BenchmarkCheck(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		tools := realistic(n, 50)
		b.Run(fmt.Sprintf("tools=%d/anew", n), func(b *testing.B) {
			d, inner := database(b), &listFake{tools: tools}
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				g := guard(b, d, inner, pin.Options{})
				b.StartTimer()
				if _, err := g.Tools(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("tools=%d/one_changed", n), func(b *testing.B) {
			offers(b, tools, func(tools []tool.Info, i int) []tool.Info {
				tools = slices.Clone(tools)
				tools[n/2].Description = fmt.Sprint("Now it is number ", i)
				tools[n/2] = described(tools[n/2])
				return tools
			})
		})
		b.Run(fmt.Sprintf("tools=%d/upstream_added", n), func(b *testing.B) {
			offers(b, tools[:n-n/50], func(all []tool.Info, i int) []tool.Info {
				return slices.Clone(tools[:n-n/50*(i%2)])
			})
		})
	}
}
