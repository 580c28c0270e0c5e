package skills_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/mcp/skills"
)

const (
	main    = "skill://acme/refunds/SKILL.md"
	content = "---\nname: refunds\ndescription: Pays back\nmetadata: {version: 1.0, since: 2026-01-02}\n---\n\nBody\n"
	front   = `{"description":"Pays back","name":"refunds","metadata":{"since":"2026-01-02","version":1}}`
)

// entry is an entry of a list with SKILL.md and further files.
func entry(uri, frontmatter string, files ...skills.File) json.RawMessage {
	raw, _ := json.Marshal(skills.Skill{URI: uri, Frontmatter: json.RawMessage(frontmatter), Files: append([]skills.File{skills.NewFile(main, []byte(content))}, files...)})
	return raw
}

func TestRead(t *testing.T) {
	t.Parallel()
	file := skills.NewFile("skill://acme/refunds/a.md", nil)
	many := make([]skills.File, 512)
	for i := range many {
		many[i] = skills.NewFile(fmt.Sprintf("skill://acme/refunds/%d", i), nil)
	}
	for want, raw := range map[string]json.RawMessage{
		"":                          entry(main, front, file),
		"is not called":             entry("skill://acme/other/SKILL.md", front),
		"not called \"\"":           entry(main, `{"description":"x"}`),
		"no description":            entry(main, `{"name":"refunds"}`),
		"or there twice":            entry(main, front, file, file),
		"is not in its folder":      entry(main, front, skills.NewFile("skill://acme/refunds2/a.md", nil)),
		"digest or size":            entry(main, front, skills.File{URI: file.URI, Digest: strings.ToUpper(file.Digest)}),
		"more than 512 files":       entry(main, front, many...),
		"or 16 MiB":                 entry(main, front, skills.File{URI: file.URI, Digest: file.Digest, Size: 17 << 20}),
		"neither a list nor":        json.RawMessage(`{"uri":"` + main + `","frontmatter":` + front + `}`),
		"its resources lack SKILL.": json.RawMessage(`{"uri":"` + main + `","frontmatter":` + front + `,"resources":[]}`),
	} {
		_, err := skills.Read(raw)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	dynamic := json.RawMessage(`{"uri":"` + main + `","frontmatter":` + front + `,"resources":"dynamic"}`)
	if s, err := skills.Read(dynamic); err != nil || !skills.IsDynamic(dynamic) || s.Files != nil {
		t.Errorf("dynamic: %+v, %v", s, err)
	}
}

// TestCheckRead checks what the official scenarios of clients do, and blobs.
func TestCheckRead(t *testing.T) {
	t.Parallel()
	s, err := skills.Read(entry(main, front, skills.NewFile("skill://acme/refunds/logo.png", []byte{1, 2, 3})))
	if err != nil {
		t.Fatal(err)
	}
	other, err := skills.Read(entry(main, `{"name":"refunds","description":"Something else"}`))
	if err != nil {
		t.Fatal(err)
	}
	text := func(content string) string {
		raw, _ := json.Marshal(map[string]any{"contents": []any{map[string]string{"uri": main, "text": content}}})
		return string(raw)
	}
	for _, c := range []struct {
		skill                skills.Skill
		uri, result, refusal string
	}{
		{s, main, text(content), ""},
		{s, main, text(strings.Replace(content, "Body", "Evil", 1)), "its digest is"},
		{s, main, text(content + "x"), "its digest is"},
		{s, main, `{"contents":[]}`, "returned no content"},
		{s, "skill://acme/refunds/new.md", text("new"), "does not list it"},
		{s, "skill://acme/refunds/logo.png", `{"contents":[{"blob":"AQID"}]}`, ""},
		{other, main, text(content), "frontmatter is not the one"},
	} {
		err := c.skill.CheckRead(c.uri, json.RawMessage(c.result))
		if (err == nil) != (c.refusal == "") || err != nil && !strings.Contains(err.Error(), c.refusal) {
			t.Errorf("%s %.40s: %v", c.uri, c.result, err)
		}
	}
}
