//! Overview that `laggard` prints without arguments: questions, and the command that answers each.

/// Every command runs as printed, except that `PID` stands for the ID of a process.
pub(crate) const OVERVIEW: &str = "\
laggard explains why one implementation is slower than another.

Questions:
  Why is B slower than A?               laggard why 'list(range(999))' '[i for i in range(999)]'
  Which is faster, and by how much?     laggard bench 'sum(range(99))' 'sum(i for i in range(99))'
  Where does a program spend its time?  laggard record -o run.lag -- python app.py
  Which functions and lines are hot?    laggard report run.lag
  Which library functions are called?   laggard calls -o calls.lag -- python app.py
  What takes time in a PyTorch trace?   laggard report trace.json.gz
  What changed between two traces?      laggard compare before.json.gz after.json.gz
  Which rank is the straggler?          laggard report ranks/
  How is a library compiled?            laggard inspect --python numpy
  What does a call from Python cost?    laggard ffi --quick
  What is a Python process doing now?   laggard dump --pid PID
  Why are timings noisy here?           laggard doctor

`laggard COMMAND --help` prints the options and examples of a command.
`laggard --help` lists all commands.";
