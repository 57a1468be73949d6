s#cannot create directory /dev/null/nowhere: Not a directory#cannot create directory Z:/dev/null/nowhere: File already exists (error 183)#
s#cannot make a file in /dev/null: Not a directory#cannot create directory Z:/dev/null: File already exists (error 183)#
