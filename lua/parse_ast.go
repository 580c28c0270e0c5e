package lua

// The syntax tree. Names are resolved while parsing: every name is a local
// variable of its function, an upvalue, a constant, or a field of _ENV.

type varKind uint8

const (
	varPlain varKind = iota
	varConst
	varClose
	varConstant // known at compile time, takes no register
)

// variable is a declared local variable.
type variable struct {
	name     string
	kind     varKind
	constant Value // of varConstant
	captured bool  // by a nested function
	reg      int   // set by the compiler while the variable is alive
}

// function is a function body with the upvalues its names need.
type function struct {
	params   []*variable
	vararg   bool
	body     *block
	upvalues []upvalueRef
	line     int
	endLine  int
	// close is set when some local variable is captured or to be closed, so
	// that returns have work to do.
	close bool
}

// upvalueRef says which variable an upvalue is: a local of the enclosing
// function, or one of its upvalues.
type upvalueRef struct {
	name  string
	local *variable
	outer int
	kind  varKind
}

type block struct {
	stats []stat
	// close is set when a variable of the block itself is captured or to be
	// closed.
	close   bool
	endLine int
}

// expr is an expression; the concrete types follow.
type expr interface{}

type (
	constExpr struct {
		value Value
		line  int
	}
	varargExpr struct{ line int }
	localExpr  struct {
		v    *variable
		line int
	}
	upvalExpr struct {
		index int
		name  string
		kind  varKind
		line  int
	}
	indexExpr struct {
		obj, key expr
		line     int
	}
	callExpr struct {
		fn     expr
		method string // for obj:method(…)
		args   []expr
		line   int
		// argsEnd is the line of the closing parenthesis.
		argsEnd int
	}
	funcExpr struct{ fn *function }
	binExpr  struct {
		op   binop
		l, r expr
		line int
	}
	unExpr struct {
		op   unop
		e    expr
		line int
	}
	tableExpr struct {
		items []tableItem
		line  int
	}
	// tableItem has no key when it is positional.
	tableItem struct {
		key, value expr
		line       int
	}
	parenExpr struct{ e expr }
)

// stat is a statement; the concrete types follow.
type stat interface{}

type (
	localStat struct {
		vars  []*variable
		exprs []expr
		line  int
		end   int // line of the last token
	}
	assignStat struct {
		targets []expr
		exprs   []expr
		end     int
	}
	callStat  struct{ call *callExpr }
	doStat    struct{ body *block }
	whileStat struct {
		cond expr
		body *block
		line int
	}
	repeatStat struct {
		body *block
		cond expr
		line int
	}
	ifStat struct {
		conds  []expr
		blocks []*block // one more than conds with an else
		lines  []int
		thens  []int // lines of then
	}
	forStat struct {
		v                  *variable
		first, limit, step expr // step may be nil
		body               *block
		line               int
	}
	forInStat struct {
		vars  []*variable
		exprs []expr
		body  *block
		line  int
		// close is set when a loop variable is captured.
	}
	localFuncStat struct {
		v    *variable
		fn   *function
		line int
	}
	funcStat struct {
		target expr
		fn     *function
		line   int
	}
	returnStat struct {
		exprs []expr
		line  int
	}
	gotoStat struct {
		label string
		line  int
		// isBreak marks a break, a goto to the end of the loop.
		isBreak bool
	}
	labelStat struct {
		name string
		line int
		// last is set when nothing but labels and semicolons follow in the
		// block: the block's variables count as out of scope there.
		last bool
	}
)

type binop uint8

const (
	binAdd binop = iota // in the order of ArithOp
	binSub
	binMul
	binMod
	binPow
	binDiv
	binIDiv
	binBand
	binBor
	binBxor
	binShl
	binShr
	binConcat
	binEq
	binNe
	binLt
	binLe
	binGt
	binGe
	binAnd
	binOr
)

type unop uint8

const (
	unMinus unop = iota
	unBnot
	unNot
	unLen
)

// priorities of the binary operators to the left and to the right; right
// associative ones bind tighter to the left.
var priorities = [...][2]int{
	binAdd: {10, 10}, binSub: {10, 10}, binMul: {11, 11}, binMod: {11, 11}, binPow: {14, 13},
	binDiv: {11, 11}, binIDiv: {11, 11}, binBand: {6, 6}, binBor: {4, 4}, binBxor: {5, 5},
	binShl: {7, 7}, binShr: {7, 7}, binConcat: {9, 8}, binEq: {3, 3}, binNe: {3, 3},
	binLt: {3, 3}, binLe: {3, 3}, binGt: {3, 3}, binGe: {3, 3}, binAnd: {2, 2}, binOr: {1, 1},
}

const unaryPriority = 12

var binaryTokens = map[token]binop{
	'+': binAdd, '-': binSub, '*': binMul, '%': binMod, '^': binPow, '/': binDiv, tokIDiv: binIDiv,
	'&': binBand, '|': binBor, '~': binBxor, tokShl: binShl, tokShr: binShr, tokConcat: binConcat,
	tokEq: binEq, tokNe: binNe, '<': binLt, tokLe: binLe, '>': binGt, tokGe: binGe,
	tokAnd: binAnd, tokOr: binOr,
}

var unaryTokens = map[token]unop{'-': unMinus, '~': unBnot, tokNot: unNot, '#': unLen}
