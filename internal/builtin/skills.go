package builtin

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/skills"
)

// Skill is a skill of ours.
type Skill struct {
	Name        string
	Description string
	Text        string            // of its SKILL.md, without frontmatter
	Files       map[string]string // the others, by their path in its folder
}

// skillFolder is where our own skills are.
const skillFolder = skills.Scheme + "luanette/"

// files are all files of a skill, by URI. main is its SKILL.md.
func (s *Skill) files() (main string, all map[string]string) {
	folder := skillFolder + s.Name + "/"
	main = folder + skills.Main
	all = map[string]string{main: "---\nname: " + s.Name + "\ndescription: " + string(rawjson.AppendText(nil, s.Description)) + "\n---\n\n" + strings.TrimSpace(s.Text) + "\n"}
	for path, text := range s.Files {
		all[folder+path] = text
	}
	return main, all
}

// Skills are the families of our own skills. It serves them to the MCP server, in MCP's format.
type Skills []func(context.Context) []Skill

func (families Skills) all(ctx context.Context) (list []Skill) {
	seen := map[string]bool{}
	for _, family := range families {
		for _, one := range family(ctx) {
			if !seen[one.Name] {
				list = append(list, one)
			}
			seen[one.Name] = true
		}
	}
	return list
}

// ListSkills lists the skills.
func (families Skills) ListSkills(ctx context.Context) ([]json.RawMessage, error) {
	list := []json.RawMessage{}
	for _, one := range families.all(ctx) {
		main, files := one.files()
		frontmatter := rawjson.SetText(rawjson.SetText(nil, "name", one.Name), "description", one.Description)
		entry := skills.Skill{URI: main, Frontmatter: frontmatter}
		for _, uri := range slices.Sorted(maps.Keys(files)) {
			entry.Files = append(entry.Files, skills.NewFile(uri, []byte(files[uri])))
		}
		raw, err := json.Marshal(entry)
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "list skills")
		}
		list = append(list, raw)
	}
	return list, nil
}

// ReadSkill returns MCP's ReadResourceResult for a file of a skill.
func (families Skills) ReadSkill(ctx context.Context, uri string) (json.RawMessage, error) {
	for _, one := range families.all(ctx) {
		_, files := one.files()
		if text, ok := files[uri]; ok {
			return json.Marshal(map[string]any{
				"contents": []map[string]string{{"uri": uri, "mimeType": skills.MIMEType(uri), "text": text}},
			})
		}
	}
	return nil, fault.New(fault.NotFound, "no resource %q", uri).WithHint("skills/list has our skills with their files")
}
