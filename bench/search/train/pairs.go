package main

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// pair is two texts that say the same.
type pair struct{ a, b string }

// source is pairs of one kind.
type source struct {
	name  string
	pairs []pair
	share float64 // of the pairs that an epoch takes; above 1 it takes all as often
	prose bool    // ordinary English rather than texts about tools: it does not choose the words
}

// readSources reads all data, in an order that depends on the files only.
func readSources(f folders) ([]source, error) {
	var all []source
	for _, read := range []func() ([]source, error){
		func() ([]source, error) { return readWordNet(f.wordnet) },
		func() ([]source, error) { return readMetaTool(f.metatool) },
		func() ([]source, error) { return readSeal(f.seal) },
		func() ([]source, error) { return readStableTool(f.stabletool) },
		func() ([]source, error) { return readTLDR(f.tldr) },
		func() ([]source, error) { return readOpenAPI(f.openapi) },
	} {
		sources, err := read()
		if err != nil {
			return nil, err
		}
		all = append(all, sources...)
	}
	return all, nil
}

// shareOfExamples is how many of WordNet's examples an epoch takes.
const shareOfExamples = 0.2

// readWordNet pairs the words of a meaning with its definition, and its examples with both.
func readWordNet(dir string) ([]source, error) {
	examples := source{name: "wordnet examples", share: shareOfExamples, prose: true}
	var all []source
	for _, kind := range []struct {
		name  string
		share float64
	}{{"noun", 0.15}, {"verb", 0.5}, {"adj", 0.15}, {"adv", 0.15}} {
		s := source{name: "wordnet " + kind.name, share: kind.share, prose: true}
		err := eachLine(filepath.Join(dir, "dict", "data."+kind.name), func(line string) error {
			meaning, ok := strings.CutPrefix(line, " ")
			if ok || meaning == "" {
				return nil
			}
			return s.addMeaning(line, &examples)
		})
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return append(all, examples), nil
}

// addMeaning adds one line of WordNet. Names of people and places are left out.
func (s *source) addMeaning(line string, examples *source) error {
	head, gloss, hasGloss := strings.Cut(line, " | ")
	words, ok := wordsOfMeaning(head)
	if !hasGloss || !ok {
		return fmt.Errorf("wordnet: %w: %.40q", errFormat, line)
	}
	if s.name == "wordnet noun" && words[0][0] >= 'A' && words[0][0] <= 'Z' {
		return nil
	}
	definition, quoted := splitGloss(gloss)
	word := strings.Join(words, " ")
	s.pairs = append(s.pairs, pair{word, definition})
	for _, example := range quoted[:min(len(quoted), 2)] {
		examples.pairs = append(examples.pairs, pair{example, word + " " + definition})
	}
	return nil
}

// wordsOfMeaning returns the words of the first half of a line: after three other fields
// stands how many there are, in hexadecimal, and each is followed by a number.
func wordsOfMeaning(head string) (words []string, ok bool) {
	fields := strings.Fields(head)
	if len(fields) < 6 {
		return nil, false
	}
	count, err := strconv.ParseInt(fields[3], 16, 32)
	if err != nil || len(fields) < 4+2*int(count) {
		return nil, false
	}
	for i := range int(count) {
		words = append(words, strings.ReplaceAll(fields[4+2*i], "_", " "))
	}
	return words, true
}

// splitGloss splits the second half of a line into the definition and its examples, which
// stand in quotes.
func splitGloss(gloss string) (definition string, examples []string) {
	var parts []string
	for part := range strings.SplitSeq(strings.TrimSpace(gloss), "; ") {
		if text, ok := strings.CutPrefix(strings.TrimSpace(part), `"`); ok {
			examples = append(examples, strings.Trim(text, `" `))
		} else {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " "), examples
}

var plainLetters = regexp.MustCompile(`[^a-z0-9]+`)

// readMetaTool pairs questions with the name and description of the plugin that answers.
func readMetaTool(dir string) ([]source, error) {
	var described map[string]string
	if err := readJSON(filepath.Join(dir, "dataset", "plugin_des.json"), &described); err != nil {
		return nil, err
	}
	bare := func(name string) string { return plainLetters.ReplaceAllString(strings.ToLower(name), "") }
	texts := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(described)) {
		texts[bare(name)] = described[name]
	}
	file, err := os.Open(filepath.Join(dir, "dataset", "data", "all_clean_data.csv")) //nolint:gosec // named on the command line
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was read
	rows, err := csv.NewReader(file).ReadAll()
	s := source{name: "metatool", share: 1}
	for _, row := range rows {
		if text := texts[bare(row[1])]; text != "" {
			s.pairs = append(s.pairs, pair{row[0], row[1] + " " + text})
		}
	}
	return []source{s}, err
}

// readSeal pairs names of functions with their descriptions, and questions that need one
// function with both.
func readSeal(dir string) ([]source, error) {
	names, asked := source{name: "seal-tools names", share: 1}, source{name: "seal-tools questions", share: 2}
	texts := map[string]string{}
	dir = filepath.Join(dir, "Seal-Tools_Dataset")
	err := eachJSON(filepath.Join(dir, "tool.jsonl"), func(t struct {
		Name string `json:"api_name"`
		Text string `json:"api_description"`
	}) {
		texts[t.Name] = t.Text
		names.pairs = append(names.pairs, pair{t.Name, t.Text})
	})
	for _, file := range []string{"dev.jsonl", "test_in_domain.jsonl", "test_out_domain.jsonl"} {
		if err != nil {
			return nil, err
		}
		err = eachJSON(filepath.Join(dir, file), func(q struct {
			Query   string
			Calling []struct{ API string }
		}) {
			if len(q.Calling) == 1 && texts[q.Calling[0].API] != "" {
				asked.pairs = append(asked.pairs, pair{q.Query, q.Calling[0].API + " " + texts[q.Calling[0].API]})
			}
		})
	}
	return []source{names, asked}, err
}

// Limits of texts, in bytes.
const (
	longestText     = 300
	longestSummary  = 150
	longestSentence = 200
	longestAbout    = 120
)

// readStableTool pairs questions with one or two operations that answer them, and names of
// operations with their descriptions.
func readStableTool(dir string) ([]source, error) {
	names, asked := source{name: "stabletoolbench names", share: 1}, source{name: "stabletoolbench questions", share: 2}
	files, err := filepath.Glob(filepath.Join(dir, "solvable_queries", "test_instruction", "*.json"))
	seen := map[pair]bool{}
	for _, file := range files {
		var queries []struct {
			Query    string
			Relevant [][]string `json:"relevant APIs"`
			List     []struct {
				Tool string `json:"tool_name"`
				API  string `json:"api_name"`
				Text string `json:"api_description"`
			} `json:"api_list"`
		}
		if err := readJSON(file, &queries); err != nil {
			return nil, err
		}
		for _, q := range queries {
			for _, one := range q.List {
				name, text := one.Tool+" "+one.API, cut(one.Text, longestText)
				if p := (pair{name, text}); !seen[p] {
					seen[p] = true
					names.pairs = append(names.pairs, p)
				}
				isRight := func(r []string) bool { return slices.Equal(r, []string{one.Tool, one.API}) }
				if len(q.Relevant) <= 2 && slices.ContainsFunc(q.Relevant, isRight) {
					asked.pairs = append(asked.pairs, pair{q.Query, name + " " + text})
				}
			}
		}
	}
	return []source{names, asked}, err
}

var (
	pageName     = regexp.MustCompile(`(?m)^# (.+)$`)
	pageExample  = regexp.MustCompile("(?m)^- (.+?):?$\\s+^`(.+)`$")
	placeholder  = regexp.MustCompile(`\{\{.*?\}\}`)
	letterMarks  = strings.NewReplacer("[", "", "]", "")
	longestValue = 30
)

// readTLDR pairs commands with what they are, and examples with their command lines.
func readTLDR(dir string) ([]source, error) {
	names, examples := source{name: "tldr commands", share: 2}, source{name: "tldr examples", share: 2}
	err := filepath.WalkDir(filepath.Join(dir, "pages"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		raw, err := os.ReadFile(path) //nolint:gosec // named on the command line
		if err != nil {
			return err
		}
		page, name := string(raw), ""
		if m := pageName.FindStringSubmatch(page); m != nil {
			name = m[1]
		}
		var about []string
		for line := range strings.Lines(page) {
			text, ok := strings.CutPrefix(strings.TrimSpace(line), "> ")
			if ok && !strings.Contains(text, "More information") && !strings.Contains(text, "See also") {
				about = append(about, text)
			}
		}
		text := strings.Join(about, " ")
		if text != "" {
			names.pairs = append(names.pairs, pair{name, text})
		}
		for _, m := range pageExample.FindAllStringSubmatch(page, -1) {
			command := placeholder.ReplaceAllStringFunc(m[2], func(value string) string {
				if len(value) >= longestValue {
					return ""
				}
				return value[strings.LastIndexByte(value, '/')+1:]
			})
			examples.pairs = append(examples.pairs, pair{letterMarks.Replace(m[1]), command + " " + cut(text, longestAbout)})
		}
		return nil
	})
	return []source{names, examples}, err
}

// Limits of what is read of OpenAPI documents, so that no provider counts too much.
const (
	largestDocument   = 1_200_000
	documentsOfAHost  = 61
	operationsOfAnAPI = 60
)

// leftOut are providers by whose tools the search is measured.
var leftOut = []string{"github.com", "stripe.com", "kubernetes", "notion.com", "gitlab.com"}

// readOpenAPI pairs summaries of operations with their names and first sentences, and names
// with summaries.
func readOpenAPI(dir string) ([]source, error) {
	documents, err := latestDocuments(dir)
	if err != nil {
		return nil, err
	}
	described, named := map[pair]bool{}, map[pair]bool{}
	random := rand.New(rand.NewPCG(2, 2)) //nolint:gosec // it chooses examples
	random.Shuffle(len(documents), func(i, j int) { documents[i], documents[j] = documents[j], documents[i] })
	hosts := map[string]int{}
	for _, path := range documents {
		host := strings.Split(path, "/")[0]
		if hosts[host]++; hosts[host] > documentsOfAHost {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, "APIs", path)) //nolint:gosec // named on the command line
		if err != nil {
			return nil, err
		}
		operations := operationsOf(raw)
		random.Shuffle(len(operations), func(i, j int) { operations[i], operations[j] = operations[j], operations[i] })
		for _, one := range operations[:min(len(operations), operationsOfAnAPI)] {
			if one.described {
				described[one.pair] = true
			} else {
				named[one.pair] = true
			}
		}
	}
	return []source{{name: "openapi summaries", pairs: sorted(described), share: 1}, {name: "openapi names", pairs: sorted(named), share: 1}}, nil
}

// latestDocuments lists the last version of each API, as paths below APIs.
func latestDocuments(dir string) ([]string, error) {
	root := filepath.Join(dir, "APIs")
	latest := map[string]string{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !slices.Contains([]string{"openapi.yaml", "swagger.yaml"}, e.Name()) {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		short, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		short = filepath.ToSlash(short)
		if info.Size() > largestDocument || slices.ContainsFunc(leftOut, func(name string) bool { return strings.Contains(short, name) }) {
			return nil
		}
		parts := strings.Split(short, "/") // provider, maybe service, version, file
		latest[strings.Join(parts[:len(parts)-2], "/")] = short
		return nil
	})
	return slices.Sorted(maps.Values(latest)), err
}

type operation struct {
	pair
	described bool // a summary with a description, else a name with what there is
}

var (
	markup   = regexp.MustCompile(`<[^>]+>`)
	variable = regexp.MustCompile(`\{[^}]*\}`)
	sentence = regexp.MustCompile(`[.!?]\s`)
)

// operationsOf reads an OpenAPI document; one that cannot be read has no operations.
func operationsOf(raw []byte) (found []operation) {
	var doc struct {
		Paths map[string]yaml.Node
	}
	if yaml.Unmarshal(raw, &doc) != nil {
		return nil
	}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range []string{"get", "post", "put", "delete", "patch"} {
			var item map[string]yaml.Node
			var op struct {
				Summary, Description string
				ID                   string `yaml:"operationId"`
			}
			node := doc.Paths[path]
			if node.Decode(&item) != nil {
				continue
			}
			one, ok := item[method]
			if !ok || one.Decode(&op) != nil {
				continue
			}
			found = append(found, pairsOf(path, method, op.ID, op.Summary, op.Description)...)
		}
	}
	return found
}

func pairsOf(path, method, id, summary, description string) (found []operation) {
	text := strings.Join(strings.Fields(markup.ReplaceAllString(description, " ")), " ")
	if at := sentence.FindStringIndex(text); at != nil {
		text = text[:at[0]+1]
	}
	text, summary = cut(text, longestSentence), cut(summary, longestSummary)
	name := cmp.Or(id, method+" "+variable.ReplaceAllString(path, ""))
	bare := func(s string) string { return strings.Trim(strings.ToLower(s), ". ") }
	if summary != "" && text != "" && bare(summary) != bare(text) {
		found = append(found, operation{pair{summary, name + " " + text}, true})
	}
	if either := cmp.Or(summary, text); either != "" {
		found = append(found, operation{pair{name, either}, false})
	}
	return found
}

func sorted(set map[pair]bool) []pair {
	return slices.SortedFunc(maps.Keys(set), func(a, b pair) int { return cmp.Or(cmp.Compare(a.a, b.a), cmp.Compare(a.b, b.b)) })
}

func cut(text string, limit int) string { return text[:min(len(text), limit)] }

func readJSON(file string, into any) error {
	raw, err := os.ReadFile(file) //nolint:gosec // named on the command line
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

func eachJSON[T any](file string, use func(T)) error {
	return eachLine(file, func(line string) error {
		var one T
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		use(one)
		return nil
	})
}

const longestLine = 16 << 20

func eachLine(path string, use func(string) error) error {
	file, err := os.Open(path) //nolint:gosec // named on the command line
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was read
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		if err := use(lines.Text()); err != nil {
			return err
		}
	}
	return lines.Err()
}
