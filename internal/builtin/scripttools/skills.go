package scripttools

import (
	"context"
	"embed"
	"io/fs"
	"path"
	"strings"

	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/scripting/script/publish"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/typedecl"
)

// skillTexts is the skill about Luanette itself: its text and further files.
//
//go:embed skill.md skill/*.md
var skillTexts embed.FS

// Skills are our own skills: how to use Luanette well, and every published script that the
// caller may use and that has a page.
func Skills(p *publish.Published, c *catalog.Catalog) builtin.Skills {
	own := ownSkill()
	return builtin.Skills{
		func(context.Context) []builtin.Skill { return []builtin.Skill{own} },
		func(ctx context.Context) []builtin.Skill { return pageSkills(ctx, p, c) },
	}
}

// ownSkill reads the skill that is in the program. It panics if that is not there.
func ownSkill() builtin.Skill {
	heading, text := readSkill("skill.md")
	description, text, _ := strings.Cut(strings.TrimSpace(text), "\n\n")
	files := map[string]string{}
	names, err := fs.Glob(skillTexts, "skill/*.md")
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		heading, text := readSkill(name)
		files["references/"+path.Base(name)] = heading + "\n" + text
	}
	return builtin.Skill{Name: "using-luanette", Description: description, Text: heading + "\n\n" + text, Files: files}
}

func readSkill(name string) (heading, text string) {
	raw, err := skillTexts.ReadFile(name)
	if err != nil {
		panic(err)
	}
	heading, text, _ = strings.Cut(string(raw), "\n")
	return heading, text
}

// mostDescription is how long the description of a skill may be.
const mostDescription = 1024

// pageSkills are the published scripts with a page.
func pageSkills(ctx context.Context, p *publish.Published, c *catalog.Catalog) (list []builtin.Skill) {
	tools, _ := c.In(ctx, "")
	for i := range tools {
		info := &tools[i]
		page, ok := p.Page(ctx, info.Name)
		if !ok {
			continue
		}
		list = append(list, builtin.Skill{
			Name:        skillName(info.Name),
			Description: builtin.Brief(info.Description, mostDescription),
			Text:        page.Text + "\n\n## The tool\n\nThe tool `" + info.Name + "` of Luanette does this: `" + info.Name + typedecl.Signature(info.Input) + "`.",
			Files:       map[string]string{"scripts/" + info.Name + extensions[page.Language]: page.Source},
		})
	}
	return list
}

// extensions are those of files, by the language of a script.
var extensions = map[string]string{"lua": ".lua", "javascript": ".js"}

// skillName is the name of a script as that of a skill: small letters, digits and single hyphens.
func skillName(script string) string {
	words := strings.FieldsFunc(strings.ToLower(script), func(r rune) bool { return r == '_' || r == '-' })
	return strings.Join(words, "-")
}
