s#/nowhere/x: No such file or directory#Z:/nowhere/x: Path not found#
s#one.fake and more/one.fake would both#more/one.fake and one.fake would both#
s#compile: /nowhere/x: there is no directory /nowhere #compile: Z:/nowhere/x: there is no directory Z:/nowhere #
