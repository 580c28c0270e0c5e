// Package skills reads and checks what servers offer as skills (the extension
// io.modelcontextprotocol/skills, SEP-2640): folders of files whose SKILL.md instructs an agent.
// A server lists a skill with all its files, their sizes and digests, and each file is a resource.
package skills

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/yamltext"
)

// Capability is what a server declares whose folders can be read, too.
var Capability = json.RawMessage(`{"directoryRead":true}`)

// Scheme is how the URIs of most skills begin.
const Scheme = "skill://"

// Main is the file that every skill has.
const Main = "SKILL.md"

// mimeTypes are those of files, by the end of their name.
var mimeTypes = map[string]string{
	".md": "text/markdown", ".lua": "text/x-lua", ".js": "text/javascript", ".ts": "text/typescript",
	".py": "text/x-python", ".sh": "application/x-sh", ".txt": "text/plain", ".json": "application/json",
}

// MIMEType is that of a file, or "" if its name says nothing.
func MIMEType(uri string) string { return mimeTypes[path.Ext(uri)] }

// Limits of a skill, as the specification has them.
const (
	maxFiles = 512
	maxBytes = 16 << 20

	maxFrontmatter = 64 << 10
)

// File is a file of a skill.
type File struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

// NewFile describes a file by its content.
func NewFile(uri string, content []byte) File {
	sum := sha256.Sum256(content)
	return File{uri, "sha256:" + hex.EncodeToString(sum[:]), int64(len(content))}
}

// Skill is a skill as a server lists it.
type Skill struct {
	URI         string          `json:"uri"` // of its SKILL.md
	Frontmatter json.RawMessage `json:"frontmatter"`
	Files       []File          `json:"resources"` // none if they are not known
}

// Root is the folder of the skill with this SKILL.md.
func Root(uri string) string { return strings.TrimSuffix(uri, "/"+Main) }

// Contains tells whether a URI is in the folder of the skill with this SKILL.md.
func Contains(main, uri string) bool { return strings.HasPrefix(uri, Root(main)+"/") }

// IsDynamic reports whether an entry of a list is of a skill whose files are not known.
func IsDynamic(entry json.RawMessage) bool {
	files, _ := rawjson.GetText(entry, "resources")
	return files == "dynamic"
}

// Read reads an entry of a list. The error says why it is no skill that can be used.
func Read(entry json.RawMessage) (s Skill, err error) {
	s.URI, _ = rawjson.GetText(entry, "uri")
	s.Frontmatter, _ = rawjson.Get(entry, "frontmatter")
	name, _ := rawjson.GetText(s.Frontmatter, "name")
	description, _ := rawjson.GetText(s.Frontmatter, "description")
	switch {
	case s.URI == Root(s.URI) || name == "" || path.Base(Root(s.URI)) != name:
		return s, fmt.Errorf("the folder of %q is not called %q", s.URI, name)
	case description == "":
		return s, errors.New("it has no description")
	case IsDynamic(entry):
		return s, nil
	}
	files, _ := rawjson.Get(entry, "resources")
	if json.Unmarshal(files, &s.Files) != nil {
		return s, errors.New("its resources are neither a list nor dynamic")
	}
	return s, s.check()
}

func (s *Skill) check() error {
	size, seen := int64(0), map[string]bool{}
	for _, file := range s.Files {
		sum, isSHA := strings.CutPrefix(file.Digest, "sha256:")
		raw, err := hex.DecodeString(sum)
		switch {
		case !Contains(s.URI, file.URI) || seen[file.URI]:
			return fmt.Errorf("%q is not in its folder, or there twice", file.URI)
		case !isSHA || err != nil || len(raw) != sha256.Size || strings.ToLower(sum) != sum || file.Size < 0:
			return fmt.Errorf("digest or size of %q is not valid", file.URI)
		}
		seen[file.URI] = true
		size += min(file.Size, maxBytes+1)
	}
	switch {
	case !seen[s.URI]:
		return fmt.Errorf("its resources lack %s", Main)
	case len(s.Files) > maxFiles || size > maxBytes:
		return fmt.Errorf("it has more than %d files or %d MiB", maxFiles, maxBytes>>20)
	}
	return nil
}

// CheckRead checks the result of resources/read for a file of a skill: it must be what the list
// says, and SKILL.md begin with the frontmatter of the list.
func (s *Skill) CheckRead(uri string, result json.RawMessage) error {
	content, err := contentOf(uri, result)
	if err == nil {
		err = s.checkContent(uri, content)
	}
	if err == nil && uri == s.URI {
		err = s.checkFrontmatter(content)
	}
	if err == nil {
		return nil
	}
	return fault.New(fault.Upstream, "%s of the skill %s cannot be used: %v", uri, path.Base(Root(s.URI)), err).
		WithHint("if the server has changed the skill, skills/get returns it as it is now")
}

func (s *Skill) checkContent(uri string, content []byte) error {
	if s.Files == nil {
		return nil // nobody knows what it should be
	}
	i := slices.IndexFunc(s.Files, func(f File) bool { return f.URI == uri })
	if i < 0 {
		return errors.New("the skill does not list it")
	}
	if got := NewFile(uri, content); got != s.Files[i] {
		return fmt.Errorf("its digest is %s and not %s as listed (%d and %d bytes)", got.Digest, s.Files[i].Digest, got.Size, s.Files[i].Size)
	}
	return nil
}

// contentOf is the content of a resource in the result of resources/read.
func contentOf(uri string, result json.RawMessage) ([]byte, error) {
	raw, _ := rawjson.Get(result, "contents")
	contents, _ := rawjson.Items(raw)
	for _, one := range contents {
		if its, _ := rawjson.GetText(one, "uri"); its != uri && len(contents) > 1 {
			continue
		}
		if text, ok := rawjson.GetText(one, "text"); ok {
			return []byte(text), nil
		}
		blob, _ := rawjson.GetText(one, "blob")
		return base64.StdEncoding.DecodeString(blob)
	}
	return nil, errors.New("the server returned no content")
}

func (s *Skill) checkFrontmatter(content []byte) error {
	text, ok := frontmatterOf(string(content))
	if !ok {
		return fmt.Errorf("%s begins with no frontmatter", Main)
	}
	written, err := yamltext.Decode([]byte(text), maxFrontmatter)
	if err != nil {
		return fmt.Errorf("its frontmatter: %w", err)
	}
	if !same(written, s.Frontmatter) {
		return errors.New("its frontmatter is not the one that is listed")
	}
	return nil
}

// frontmatterOf is the text between the two lines of --- at the start of a file.
func frontmatterOf(text string) (string, bool) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	rest, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return "", false
	}
	at := 0
	for line := range strings.Lines(rest) {
		if at > maxFrontmatter {
			break
		}
		if strings.TrimRight(line, " \t\n") == "---" {
			return rest[:at], true
		}
		at += len(line)
	}
	return "", false
}

// same compares JSON by what it means.
func same(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// Moved is an entry of a list with another URI of its SKILL.md; its other files move with it.
func Moved(entry json.RawMessage, to string) json.RawMessage {
	from, _ := rawjson.GetText(entry, "uri")
	raw, _ := rawjson.Get(entry, "resources")
	if files, isList := rawjson.Items(raw); isList {
		for i := range files {
			uri, _ := rawjson.GetText(files[i], "uri")
			files[i] = rawjson.SetText(files[i], "uri", MovedURI(uri, from, to))
		}
		entry = rawjson.Set(entry, "resources", rawjson.List(files))
	}
	return rawjson.SetText(entry, "uri", to)
}

// MovedURI is the URI of a file of a skill when its SKILL.md moves.
func MovedURI(uri, from, to string) string {
	rest, ok := strings.CutPrefix(uri, Root(from)+"/")
	if !ok {
		return uri
	}
	return Root(to) + "/" + rest
}

// Folder is the result of resources/directory/read: what is directly in a folder of the skills in
// a list. It is false if the URI names no folder.
func Folder(entries []json.RawMessage, uri string) (json.RawMessage, bool) {
	children := map[string]json.RawMessage{}
	for _, entry := range entries {
		main, _ := rawjson.GetText(entry, "uri")
		if !strings.HasPrefix(main, uri+"/") && !strings.HasPrefix(uri+"/", Root(main)+"/") {
			continue
		}
		skill, err := Read(entry)
		if err != nil {
			continue
		}
		for _, file := range skill.Files {
			if rest, isIn := strings.CutPrefix(file.URI, uri+"/"); isIn {
				child, _, isFolder := strings.Cut(rest, "/")
				children[child] = childOf(uri, child, file, isFolder)
			}
		}
	}
	if len(children) == 0 {
		return nil, false
	}
	list := make([]json.RawMessage, 0, len(children))
	for _, name := range slices.Sorted(maps.Keys(children)) {
		list = append(list, children[name])
	}
	return rawjson.Set(nil, "resources", rawjson.List(list)), true
}

// childOf is a file or a folder in a folder, as a resource.
func childOf(folder, name string, file File, isFolder bool) json.RawMessage {
	child := rawjson.SetText(rawjson.SetText(nil, "uri", folder+"/"+name), "name", name)
	if isFolder {
		return rawjson.SetText(child, "mimeType", "inode/directory")
	}
	if kind := MIMEType(name); kind != "" {
		child = rawjson.SetText(child, "mimeType", kind)
	}
	return rawjson.Set(child, "size", json.RawMessage(strconv.FormatInt(file.Size, 10)))
}

// Resource is the SKILL.md of an entry as resources/list has it.
func Resource(entry json.RawMessage) json.RawMessage {
	resource := json.RawMessage(`{}`)
	frontmatter, _ := rawjson.Get(entry, "frontmatter")
	uri, _ := rawjson.GetText(entry, "uri")
	resource = rawjson.SetText(resource, "uri", uri)
	for _, key := range []string{"name", "description"} {
		text, _ := rawjson.GetText(frontmatter, key)
		resource = rawjson.SetText(resource, key, text)
	}
	return rawjson.SetText(resource, "mimeType", MIMEType(Main))
}
