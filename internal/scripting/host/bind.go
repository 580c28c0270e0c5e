package host

import (
	"context"
	"encoding/json"
	"reflect"
)

// Bind makes the Effect of a Func from an ordinary Go function.
//
// Its first parameters may be a context.Context, the *Services and the Args, in this order.
// The others are the arguments of the script: a string, an int64, a float64, a
// json.RawMessage for the JSON of a table (nil if it is missing), a Value for anything, and
// a struct, map or slice for a table to decode. A pointer to one of these is nil if the
// argument is missing.
//
// Its results are what the script receives, and an error as the last: bytes become a string,
// a nil pointer nil, a struct, map or slice a table; a list of Values is all results.
func Bind(function any) func(context.Context, *Services, Args) ([]Value, error) {
	f := reflect.ValueOf(function)
	t := f.Type()
	return func(ctx context.Context, services *Services, args Args) ([]Value, error) {
		in := make([]reflect.Value, t.NumIn())
		for i, n := 0, 1; i < len(in); i++ {
			switch t.In(i) {
			case reflect.TypeFor[context.Context]():
				in[i] = reflect.ValueOf(ctx)
			case reflect.TypeFor[*Services]():
				in[i] = reflect.ValueOf(services)
			case reflect.TypeFor[Args]():
				in[i] = reflect.ValueOf(args)
			default:
				var err error
				if in[i], err = args.as(n, t.In(i)); err != nil {
					return nil, err
				}
				n++
			}
		}
		return valuesOf(f.Call(in))
	}
}

// BindPure makes the Pure of a Func, as Bind does, from a function without context and
// Services.
func BindPure(function any) func(Args) ([]Value, error) {
	effect := Bind(function)
	return func(args Args) ([]Value, error) { return effect(context.Background(), nil, args) }
}

// Or returns the value of an argument that may be missing.
func Or[T any](argument *T, otherwise T) T {
	if argument == nil {
		return otherwise
	}
	return *argument
}

// as reads argument i as a value of a type.
func (a Args) as(i int, t reflect.Type) (reflect.Value, error) {
	v := reflect.New(t)
	var err error
	switch to := v.Interface().(type) {
	case *string:
		*to, err = a.String(i)
	case *int64:
		*to, err = a.Int(i)
	case *float64:
		*to, err = a.Float(i)
	case *json.RawMessage:
		*to, err = a.Table(i)
	case *Value:
		*to = a.At(i)
	default:
		if t.Kind() != reflect.Pointer {
			err = a.Decode(i, to)
		} else if a.At(i) != nil {
			v.Elem().Set(reflect.New(t.Elem()))
			var there reflect.Value
			there, err = a.as(i, t.Elem())
			v.Elem().Elem().Set(there)
		}
	}
	return v.Elem(), err
}

// valuesOf converts the results of a Go function. Beside an error they do not count.
func valuesOf(out []reflect.Value) ([]Value, error) {
	if last := len(out) - 1; last >= 0 && out[last].Type() == reflect.TypeFor[error]() {
		if err, failed := out[last].Interface().(error); failed {
			return nil, err
		}
		out = out[:last]
	}
	if len(out) == 1 && out[0].Type() == reflect.TypeFor[[]Value]() {
		return out[0].Interface().([]Value), nil
	}
	var values []Value
	for _, v := range out {
		value, err := result(v)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, nil
}

func result(v reflect.Value) (Value, error) {
	switch x := v.Interface().(type) {
	case nil, bool, int64, float64, string, json.RawMessage, *Lazy:
		return x, nil
	case int:
		return int64(x), nil
	case []byte:
		return string(x), nil
	}
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil():
		return nil, nil
	case v.Kind() == reflect.Pointer:
		return result(v.Elem())
	case v.Kind() == reflect.Slice && v.IsNil():
		return json.RawMessage("[]"), nil
	default:
		return Table(v.Interface())
	}
}
