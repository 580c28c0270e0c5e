package lua

// companions are what a library hands out without having it in its table:
// iterators, methods, searchers. A saved state may refer to them wherever it
// may refer to the library.
type companions struct {
	functions []companion
	libraries []*Library
	// userdata makes the Go values of the library's userdata again, by kind.
	userdata map[string]func(s *State, data []byte) (any, error)
	// attach gives a restored state what the library's functions rely on.
	attach func(s *State)
}

// companion is a function that is bound to values. Accepts checks values that
// come from outside: the function itself relies on what its library bound.
type companion struct {
	function *Function
	accepts  func(bound []Value) bool
}

func (l *Library) companions() companions {
	switch l {
	case Base:
		return companions{functions: []companion{{ipairsIterator, isUnbound}}}
	case CoroutineLib:
		return companions{functions: []companion{{wrapped, bindsThread}}}
	case StringLib:
		return companions{
			functions: []companion{{gmatchIterator, bindsMatch}},
			libraries: []*Library{stringMetamethods},
		}
	case UTF8Lib:
		return companions{functions: []companion{{utf8Strict, isUnbound}, {utf8Lax, isUnbound}}}
	case Package, PackageFiles:
		return l.searchers()
	case IOLib:
		return companions{
			functions: []companion{{linesIterator, bindsFile}},
			libraries: []*Library{fileMethods, fileMetamethods},
			userdata:  map[string]func(*State, []byte) (any, error){streamKind: restoreStream},
			attach:    attachFiles,
		}
	}
	return companions{}
}

// searchers are the functions behind require.
func (l *Library) searchers() companions {
	c := companions{
		functions: []companion{
			{requireFunction, bindsTable}, {preloadSearcher, bindsTable}, {loaderSearcher, bindsTable},
		},
		attach: func(s *State) {
			if s.preload == nil {
				s.preload = NewTable(0, 0)
			}
		},
	}
	if l == PackageFiles {
		c.functions = append(c.functions, companion{fileSearcher, bindsTable}, companion{nativeSearcher, bindsTable})
	}
	return c
}

func isUnbound(bound []Value) bool   { return len(bound) == 0 }
func bindsTable(bound []Value) bool  { return len(bound) == 1 && bound[0].isTable() }
func bindsThread(bound []Value) bool { return len(bound) == 1 && bound[0].Kind() == KindThread }

// bindsMatch checks subject, pattern, position and end of the last match.
func bindsMatch(bound []Value) bool {
	if len(bound) != 4 || !bound[0].isString() || !bound[1].isString() || !bound[2].isInt() || !bound[3].isInt() {
		return false
	}
	return bound[2].int() >= 0 && bound[2].int() <= int64(len(bound[0].str().s))+1
}

// bindsFile checks the file of lines, whether to close it, and the formats.
func bindsFile(bound []Value) bool { return len(bound) >= 2 && isStream(bound[0]) }

func isStream(v Value) bool {
	u, ok := v.AsUserdata()
	if !ok {
		return false
	}
	_, ok = u.Data.(*stream)
	return ok
}

// attachFiles prepares a restored state for the functions of io: a list of
// open files, and default files in the registry.
func attachFiles(s *State) {
	s.Store(openFilesKey{}, openFiles{})
	registry := s.registryTable()
	if !registry.GetString(fileMetaKey).isTable() {
		registry.SetString(fileMetaKey, fileMetamethods.template.borrow().Value())
	}
	if !isStream(registry.GetString(inputKey)) {
		registry.SetString(inputKey, s.newFile(newInputStream(s.stdin())))
	}
	if !isStream(registry.GetString(outputKey)) {
		registry.SetString(outputKey, s.newFile(newOutputStream(s.stdout())))
	}
}
