package main

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Plan says who may import whom.
type Plan struct {
	Floors     []Floor             // top first; imports go down
	SitsOn     map[string][]string // neighbours on one floor that may be imported all the same
	Beside     []string            // import nothing of ours, may be imported by all
	Workshop   []string            // tools and tests: may import all, imported only by each other
	Everywhere []string            // third-party packages that several of ours may import
	Strangers  map[string][]string // rooms that must not come to know others, not even by way of a third
	Veils      []string            // packages that show nothing of what they import
}

// Floor is a row of packages that do not import each other. A room ending in
// "/*" is a folder of like packages; anything below a room belongs to it.
type Floor struct {
	Name  string
	Rooms []string
}

// Problem is one arrow that points the wrong way.
type Problem struct {
	File, From, To string
	Why, Turn      string
}

func (p Problem) String() string {
	return fmt.Sprintf("%s\n  %s -> %s\n  why it is wrong: %s\n  how to turn it:  %s", p.File, p.From, p.To, p.Why, p.Turn)
}

// Check returns every arrow that breaks the plan, in a stable order.
func (plan Plan) Check(packages []Package) []Problem {
	var problems []Problem
	owners := map[string][]string{} // third-party module prefix -> our importers
	for _, p := range packages {
		from := p.local()
		for _, imported := range p.Imports {
			switch {
			case strings.HasPrefix(imported, p.Module.Path+"/"):
				to := strings.TrimPrefix(imported, p.Module.Path+"/")
				if why, turn := plan.wrong(from, to); why != "" {
					problems = append(problems, Problem{p.fileImporting(imported), from, to, why, turn})
				}
			case strings.Contains(strings.Split(imported, "/")[0], "."):
				if !slices.Contains(plan.Everywhere, imported) && !plan.isWorkshop(from) {
					owners[library(imported)] = append(owners[library(imported)], from)
				}
			}
		}
		if _, _, ok := plan.locate(from); !ok {
			problems = append(problems, Problem{p.Dir, from, "(no floor)", "the plan does not know this package", "add it to its floor in tools/floors/house.go, or move it into a package that is there"})
		}
	}
	problems = append(problems, plan.acquainted(packages)...)
	return append(problems, plan.sharedLibraries(owners)...)
}

// acquainted reports the ways by which rooms come to know what they must not.
func (plan Plan) acquainted(packages []Package) []Problem {
	var problems []Problem
	byPath := map[string]Package{}
	for _, p := range packages {
		byPath[p.ImportPath] = p
	}
	for _, p := range packages {
		room, _, _ := plan.locate(p.local())
		for _, stranger := range plan.Strangers[room] {
			if way := plan.wayTo(byPath, p, stranger, map[string]bool{}); way != nil {
				problems = append(problems, Problem{p.fileImporting(way[0].ImportPath), p.local(), stranger,
					"it must not know it, not even by way of " + way[0].local(), "hand in an interface, or move the shared word down"})
			}
		}
	}
	return problems
}

// wayTo is the packages from p to one in the room, the first being p's own
// import; nil when there is no way.
func (plan Plan) wayTo(byPath map[string]Package, p Package, room string, seen map[string]bool) []Package {
	for _, imported := range p.Imports {
		next, ours := byPath[imported]
		if !ours || seen[imported] {
			continue
		}
		seen[imported] = true
		if inRoom(next.local(), room) {
			return []Package{next}
		}
		if slices.ContainsFunc(plan.Veils, func(veil string) bool { return inRoom(next.local(), veil) }) {
			continue
		}
		if way := plan.wayTo(byPath, next, room, seen); way != nil {
			return append([]Package{next}, way...)
		}
	}
	return nil
}

// wrong says why from may not import to, and what to do instead; "" when it may.
func (plan Plan) wrong(from, to string) (why, turn string) {
	fromRoom, fromFloor, _ := plan.locate(from)
	toRoom, toFloor, known := plan.locate(to)
	switch {
	case plan.isWorkshop(to) && !plan.isWorkshop(from):
		return "the workshop is not part of the program", "move what you need into a package of the house"
	case plan.isBeside(from):
		return "it stands beside the house and imports nothing of ours", "state an interface there and hand it in"
	case plan.isWorkshop(from), plan.isBeside(to), !known, fromRoom == toRoom, fromFloor < toFloor:
		return "", ""
	case fromFloor > toFloor:
		return fmt.Sprintf("%q stands above %q", plan.Floors[toFloor].Name, plan.Floors[fromFloor].Name),
			"state the interface you need where you use it and let internal/app tie the knot, or move the shared word down"
	case slices.Contains(plan.SitsOn[fromRoom], toRoom):
		return "", ""
	default:
		return fmt.Sprintf("both are on the floor %q, and neighbours do not import each other", plan.Floors[fromFloor].Name),
			"move the shared word down a floor, or state an interface and let internal/app tie the knot"
	}
}

// locate finds the room and floor of a package of ours. Packages beside the
// house and in the workshop have none, but are known.
func (plan Plan) locate(local string) (room string, floor int, known bool) {
	for i, f := range plan.Floors {
		for _, room := range f.Rooms {
			if inRoom(local, room) {
				return room, i, true
			}
		}
	}
	return "", -1, plan.isBeside(local) || plan.isWorkshop(local)
}

func inRoom(local, room string) bool {
	if folder, many := strings.CutSuffix(room, "/*"); many {
		return strings.HasPrefix(local, folder+"/")
	}
	return local == room || strings.HasPrefix(local, room+"/")
}

func (plan Plan) isBeside(local string) bool {
	return slices.ContainsFunc(plan.Beside, func(room string) bool { return inRoom(local, room) })
}

func (plan Plan) isWorkshop(local string) bool {
	return slices.ContainsFunc(plan.Workshop, func(room string) bool { return inRoom(local, room) })
}

// sharedLibraries reports third-party libraries with more than one owner.
func (plan Plan) sharedLibraries(owners map[string][]string) []Problem {
	var problems []Problem
	for _, lib := range sortedKeys(owners) {
		var rooms []string
		for _, from := range owners[lib] {
			room, _, _ := plan.locate(from)
			if room == "" {
				room = from
			}
			rooms = append(rooms, room)
		}
		slices.Sort(rooms)
		if rooms = slices.Compact(rooms); len(rooms) > 1 {
			problems = append(problems, Problem{strings.Join(rooms, ", "), strings.Join(rooms, " and "), lib,
				"a third-party library stays inside one package", "wrap it in one of them and let the other speak to the wrapper"})
		}
	}
	return problems
}

// library shortens an import path to what one would call the library, so that
// two packages of the same one count together.
func library(imported string) string {
	parts := strings.Split(imported, "/")
	if strings.HasPrefix(imported, "go.opentelemetry.io/") {
		return "go.opentelemetry.io"
	}
	return path.Join(parts[:min(3, len(parts))]...)
}

// Draw shows every floor with its packages and what each of them imports.
func (plan Plan) Draw(packages []Package) string {
	var out strings.Builder
	for i, floor := range plan.Floors {
		for _, p := range packages {
			if _, at, ok := plan.locate(p.local()); ok && at == i {
				fmt.Fprintf(&out, "%-10s %-28s -> %s\n", floor.Name, p.local(), strings.Join(p.ourImports(), " "))
			}
		}
	}
	for _, p := range packages {
		if plan.isBeside(p.local()) {
			fmt.Fprintf(&out, "%-10s %-28s -> %s\n", "beside", p.local(), strings.Join(p.ourImports(), " "))
		}
	}
	return out.String()
}

// local is the package's path inside the module.
func (p Package) local() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, p.Module.Path), "/")
}

func (p Package) ourImports() []string {
	var ours []string
	for _, imported := range p.Imports {
		if local, ok := strings.CutPrefix(imported, p.Module.Path+"/"); ok {
			ours = append(ours, strings.TrimPrefix(local, "internal/"))
		}
	}
	return ours
}

// fileImporting finds the file to open, relative to the module's root.
func (p Package) fileImporting(imported string) string {
	for _, name := range p.GoFiles {
		file := filepath.Join(p.Dir, name)
		if importsPath(file, imported) {
			if rel, err := filepath.Rel(p.Module.Dir, file); err == nil {
				return rel
			}
			return file
		}
	}
	return p.local()
}
