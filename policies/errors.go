package policies

import (
	"errors"
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/lakeweir/lakeweir/catalog"
)

// placeOf prints a place in a policy: "policies/pii.rego:4:1".
func placeOf(at *ast.Location) string {
	if at == nil || at.File == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d:%d", at.File, max(1, at.Row), max(1, at.Col))
}

// regoProblems turns what the parser or compiler says into problems.
func regoProblems(err error, file string) []*catalog.Error {
	var list ast.Errors
	if one, ok := errors.AsType[*ast.Error](err); ok {
		list = ast.Errors{one}
	} else if many, ok := errors.AsType[ast.Errors](err); ok {
		list = many
	} else {
		return []*catalog.Error{catalog.Invalidf(catalog.CodePolicySyntax, file, "check the file", "%w", err)}
	}
	var out []*catalog.Error
	for _, e := range list {
		code, hint := catalog.CodePolicyCompile, "see docs/policies.md for what a rule sees and answers"
		switch {
		case e.Code == ast.ParseErr:
			code, hint = catalog.CodePolicySyntax, "policies are Rego v1: rules have if and contains"
		case strings.Contains(e.Message, "undefined function"):
			hint = "use a function that is defined; those that reach the network, the clock, the environment or randomness are not there"
		case e.Code == ast.TypeErr && strings.Contains(e.Message, "undefined ref"):
			hint = "lakeweir policy schema prints what a rule sees as input"
		}
		at := placeOf(e.Location)
		if at == "" {
			at = file
		}
		message := e.Message
		if e.Details != nil {
			message = strings.TrimRight(message+"\n"+strings.Join(e.Details.Lines(), "\n"), "\n")
		}
		out = append(out, catalog.Invalidf(code, at, hint, "%s", message))
	}
	return out
}

// evaluationFailure says why an evaluation failed.
func evaluationFailure(err error, limit fmt.Stringer) *catalog.Error {
	failure := catalog.Invalidf(catalog.CodePolicyFailed, "", "correct the rule: what fails in an expression is an error here, and not undefined", "%w", err)
	if e, ok := errors.AsType[*topdown.Error](err); ok {
		failure.At, failure.Message = placeOf(e.Location), e.Message
		if topdown.IsCancel(err) {
			failure.Message = "no answer within " + limit.String()
		}
	}
	return failure
}

// unusable is an answer that nobody understands.
func unusable(at, format string, args ...any) *catalog.Error {
	return catalog.Invalidf(catalog.CodePolicyFailed, at, "see docs/policies.md for what a rule answers", format, args...)
}

func asFailure(e *catalog.Error) *catalog.Failure {
	return &catalog.Failure{Code: e.Code, Message: e.Message, At: e.At}
}
