from lors.cli import main

main()
