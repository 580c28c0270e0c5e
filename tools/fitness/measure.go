package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"strings"
)

// The limits; docs/decisions/007 says where they come from.
const (
	maxLines      = 50
	maxComplexity = 10
	maxDepth      = 4
	maxParams     = 5
)

// function is the measures of one function or function literal.
type function struct {
	at         token.Position
	name       string
	lines      int // of code, without blank lines, comments and returns of errors
	complexity int // cyclomatic, without branches that only return an error
	depth      int // of nested blocks
	params     int // without contexts
}

// excess lists the limits that the function exceeds.
func (f function) excess() (list []string) {
	for _, m := range []struct {
		value, limit int
		text         string
	}{
		{f.lines, maxLines, "has %d lines (at most %d)"},
		{f.complexity, maxComplexity, "has complexity %d (at most %d)"},
		{f.depth, maxDepth, "nests %d blocks (at most %d)"},
		{f.params, maxParams, "has %d parameters (at most %d)"},
	} {
		if m.value > m.limit {
			list = append(list, fmt.Sprintf(m.text, m.value, m.limit))
		}
	}
	return list
}

// measure returns all functions of a file. A function literal is measured by
// itself and does not count for the function around it.
func measure(fset *token.FileSet, file *ast.File, source []byte) (all []function) {
	code := codeLines(fset, file, source)
	add := func(name string, pos ast.Node, params *ast.FieldList, body *ast.BlockStmt) {
		from, to := fset.Position(body.Lbrace).Line, fset.Position(body.Rbrace).Line
		f := function{at: fset.Position(pos.Pos()), name: name, complexity: 1, params: countParams(params)}
		for line := from + 1; line < to && !isValue(body); line++ {
			if code[line] {
				f.lines++
			}
		}
		f.lines -= errorLines(fset, body)
		f.depth = depth(body.List)
		f.complexity += branches(body)
		all = append(all, f)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Body != nil {
				add(n.Name.Name, n, n.Type.Params, n.Body)
			}
		case *ast.FuncLit:
			add("function literal", n, n.Type.Params, n.Body)
		}
		return true
	})
	return all
}

// isValue reports whether a function only returns a composite literal, whose
// length does not count.
func isValue(body *ast.BlockStmt) bool {
	if len(body.List) != 1 {
		return false
	}
	result, ok := body.List[0].(*ast.ReturnStmt)
	if !ok || len(result.Results) != 1 {
		return false
	}
	_, ok = result.Results[0].(*ast.CompositeLit)
	return ok
}

// codeLines returns the lines that hold code.
func codeLines(fset *token.FileSet, file *ast.File, source []byte) map[int]bool {
	lines := map[int]bool{}
	number := 0
	for line := range bytes.Lines(source) {
		number++
		lines[number] = len(bytes.TrimSpace(line)) > 0
	}
	for _, group := range file.Comments {
		for _, c := range group.List {
			from, to := fset.Position(c.Pos()), fset.Position(c.End())
			for line := from.Line; line <= to.Line; line++ {
				if line > from.Line || strings.TrimSpace(string(source[from.Offset-from.Column+1:from.Offset])) == "" {
					lines[line] = false
				}
			}
		}
	}
	return lines
}

func countParams(list *ast.FieldList) (n int) {
	for _, field := range list.List {
		if selector, ok := field.Type.(*ast.SelectorExpr); ok && selector.Sel.Name == "Context" {
			continue
		}
		n += max(1, len(field.Names))
	}
	return n
}

// branches counts the branches of a body. A switch or select counts once.
func branches(body ast.Node) (n int) {
	ast.Inspect(body, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncLit:
			return false
		case *ast.IfStmt:
			if !returnsError(node) {
				n++
			}
		case *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
			n++
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

// errorLines counts the lines that only return an error: all of `if err != nil { return err }`,
// and all but the first where the condition makes the call.
func errorLines(fset *token.FileSet, body ast.Node) (n int) {
	ast.Inspect(body, func(node ast.Node) bool {
		if check, ok := node.(*ast.IfStmt); ok && returnsError(check) {
			n += fset.Position(check.End()).Line - fset.Position(check.Pos()).Line
			if check.Init == nil {
				n++
			}
		}
		_, literal := node.(*ast.FuncLit)
		return !literal
	})
	return n
}

// returnsError reports whether an if statement only returns when there is an
// error, which languages with exceptions do without a branch.
func returnsError(n *ast.IfStmt) bool {
	condition, ok := n.Cond.(*ast.BinaryExpr)
	if !ok || condition.Op != token.NEQ || n.Else != nil || len(n.Body.List) != 1 {
		return false
	}
	name, isName := condition.X.(*ast.Ident)
	null, isNil := condition.Y.(*ast.Ident)
	_, returns := n.Body.List[0].(*ast.ReturnStmt)
	return returns && isName && isNil && null.Name == "nil" && strings.HasSuffix(strings.ToLower(name.Name), "err")
}

// depth is how deep blocks nest in a list of statements. An else-if is as deep as
// its if, a case as deep as its switch.
func depth(list []ast.Stmt) (deepest int) {
	for _, stmt := range list {
		deepest = max(deepest, depthOf(stmt))
	}
	return deepest
}

func depthOf(stmt ast.Stmt) int {
	switch s := stmt.(type) {
	case *ast.IfStmt:
		deepest := 1 + depth(s.Body.List)
		switch other := s.Else.(type) {
		case *ast.IfStmt:
			deepest = max(deepest, depthOf(other))
		case *ast.BlockStmt:
			deepest = max(deepest, 1+depth(other.List))
		}
		return deepest
	case *ast.ForStmt:
		return 1 + depth(s.Body.List)
	case *ast.RangeStmt:
		return 1 + depth(s.Body.List)
	case *ast.SwitchStmt:
		return 1 + depth(s.Body.List)
	case *ast.TypeSwitchStmt:
		return 1 + depth(s.Body.List)
	case *ast.SelectStmt:
		return 1 + depth(s.Body.List)
	case *ast.CaseClause:
		return depth(s.Body)
	case *ast.CommClause:
		return depth(s.Body)
	case *ast.BlockStmt:
		return 1 + depth(s.List)
	case *ast.LabeledStmt:
		return depthOf(s.Stmt)
	}
	return 0
}
