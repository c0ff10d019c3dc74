package amazon

import (
	"errors"
	"slices"

	"github.com/aws/smithy-go"
)

// codes of errors, of several services.
var (
	throttles = []string{
		"RequestLimitExceeded", "Throttling", "ThrottlingException", "ThrottledException", "RequestThrottled",
		"RequestThrottledException", "TooManyRequestsException", "EC2ThrottledException", "BandwidthLimitExceeded",
	}
	refused = []string{
		"AuthFailure", "UnauthorizedOperation", "InvalidClientTokenId", "ExpiredToken", "ExpiredTokenException",
		"SignatureDoesNotMatch", "RequestExpired", "UnrecognizedClientException", "AccessDenied", "AccessDeniedException",
		"IncompleteSignature", "MissingAuthenticationToken", "InvalidAccessKeyId", "OptInRequired", "Blocked",
		"PendingVerification", "NotAuthorized",
	}
)

// Throttles reports whether an error with this code says that requests come too often.
func Throttles(code string) bool { return slices.Contains(throttles, code) }

// Refuses reports whether an error with this code says that the caller is not allowed to.
func Refuses(code string) bool { return slices.Contains(refused, code) }

// CodeOf is the code of an error that a service has answered, or "".
func CodeOf(err error) string {
	var answer smithy.APIError
	if errors.As(err, &answer) {
		return answer.ErrorCode()
	}
	return ""
}

// TextOf returns the code and the message of an error that a service has answered.
func TextOf(err error) string {
	var answer smithy.APIError
	errors.As(err, &answer)
	return answer.ErrorCode() + ": " + answer.ErrorMessage()
}
