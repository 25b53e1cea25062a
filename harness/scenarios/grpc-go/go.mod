module greet

go 1.19

require google.golang.org/grpc/examples v0.0.0-20230224211313-3775f633ce20 // indirect
