package clientfile

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Input is a value that a client asks a person for, and does not keep in the file.
type Input struct {
	ID          string   `json:"id"`
	Description string   `json:"description,omitempty"`
	Secret      bool     `json:"secret,omitempty"`
	Default     string   `json:"default,omitempty"`
	Options     []string `json:"options,omitempty"`
}

// forms converts a client's ways to write variables into ours: ${VAR},
// ${VAR:-default}, ${env:VAR}, ${file:PATH}, and ${input:ID} for what is asked.
type forms struct {
	variables Variables
	home      string
	project   string   // the folder of the project the file belongs to, or ""
	folder    string   // of the file
	inputs    *[]Input // that were found
}

// Variables names how a client writes variables.
type Variables string

// The ways to write variables. VSCode's are understood everywhere.
const (
	VSCode   Variables = ""         // ${env:VAR}, ${userHome}, ${workspaceFolder}, ${input:ID}; also ${VAR} and ${VAR:-default}
	Shell    Variables = "shell"    // $VAR, too
	OpenCode Variables = "opencode" // {env:VAR}, {file:PATH}
	Continue Variables = "continue" // ${{ secrets.NAME }}
)

var (
	dollarName    = regexp.MustCompile(`\$([A-Za-z_][A-Za-z0-9_]*)`)
	braceForm     = regexp.MustCompile(`\{(env|file):([^}]*)\}`)
	secretsForm   = regexp.MustCompile(`\$\{\{\s*(?:secrets|inputs)\.([A-Za-z0-9_.-]+)\s*\}\}`)
	plainVariable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)
	inputForm     = regexp.MustCompile(`\$\{input:([^}]+)\}`)
)

func (f forms) convert(text string) string {
	if !strings.ContainsAny(text, "${") {
		return text
	}
	switch f.variables {
	case Shell:
		text = dollarName.ReplaceAllString(text, "${${1}}")
	case OpenCode:
		text = braceForm.ReplaceAllStringFunc(text, f.brace)
	case Continue:
		text = secretsForm.ReplaceAllStringFunc(text, func(form string) string {
			name := secretsForm.FindStringSubmatch(form)[1]
			f.ask(Input{ID: name, Description: "Continue keeps it as a secret", Secret: true})
			return "${input:" + name + "}"
		})
	}
	for _, m := range inputForm.FindAllStringSubmatch(text, -1) {
		f.ask(Input{ID: m[1]})
	}
	return f.folders(text)
}

// brace converts a form of opencode.
func (f forms) brace(form string) string {
	m := braceForm.FindStringSubmatch(form)
	if m[1] == "env" {
		return "${env:" + m[2] + "}"
	}
	path := m[2]
	if rest, below := strings.CutPrefix(path, "~/"); below {
		path = filepath.Join(f.home, rest)
	} else if !filepath.IsAbs(path) {
		path = filepath.Join(f.folder, path)
	}
	return "${file:" + path + "}"
}

// folders replaces the folders that are known.
func (f forms) folders(text string) string {
	pairs := []string{"${pathSeparator}", string(filepath.Separator), "${/}", string(filepath.Separator)}
	if f.home != "" {
		pairs = append(pairs, "${userHome}", f.home)
	}
	if f.project != "" {
		pairs = append(pairs, "${workspaceFolder}", f.project, "${workspaceFolderBasename}", filepath.Base(f.project))
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// ask records an input.
func (f forms) ask(input Input) {
	if !slices.ContainsFunc(*f.inputs, func(known Input) bool { return known.ID == input.ID }) {
		*f.inputs = append(*f.inputs, input)
	}
}
