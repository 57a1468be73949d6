s#cannot create directory /dev/null/nowhere: Not a directory#cannot create directory Z:/dev/null/nowhere: File already exists (error 183)#
s#compile: /no/such/directory/x: there is no directory /no/such/directory #compile: Z:/no/such/directory/x: there is no directory Z:/no/such/directory #
