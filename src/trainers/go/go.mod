module transect-trainer-go

go 1.26
