"""Lists of function words of several languages, such as "the" and "of". Function words name no topic."""

from __future__ import annotations

from collections.abc import Mapping

_MIN_SHARE = 0.05  # a language is recognized if its function words make up at least this share of all words

_LISTS = {
    "english": """
        a about above across actually after afterwards again against ago ain ain't aint all almost alone
        along already also although always am amid among an and another any anybody anyhow anymore anyone
        anything anyway anywhere apart are aren aren't arent around as aside at away back basically be
        became because become becomes been before beforehand behind being below beneath beside besides
        between beyond both but by came can can't cannot cant certainly come comes coming could could've
        couldn couldn't couldnt despite did didn didn't didnt do does doesn doesn't doesnt doing don don't
        done dont down due during each eg either else elsewhere enough especially etc even ever every
        everybody everyone everything everywhere except far few fewer followed for former formerly from
        further furthermore gave get gets getting give given gives giving go goes going gone gonna got gotta
        gotten had hadn hadn't hadnt has hasn hasn't hasnt have haven haven't havent having he he'd he'll
        he's hello hence her here here's hereby heres hers herself hes hey hi him himself his how how'd
        how's however hows i i'd i'll i'm i've id ie if ill im in indeed inside instead into is isn isn't
        isnt it it'd it'll it's its itself ive just keep keeps kept kind kinda knew know known knows lately
        later latter least less lest let let's lets like likely lot lots made mainly make makes making many
        may maybe me mean means meanwhile might mightn mine more moreover most mostly much must mustn
        mustn't my myself namely near nearly need needed needn needs neither never nevertheless no nobody
        none nonetheless nor not nothing now nowhere obviously of off often oh ok okay on once one one's
        ones oneself only onto or other others otherwise ought our ours ourselves out outside over own per
        perhaps please possible possibly presumably probably put puts putting quite rather re really
        regarding respectively said same saw say saying says see seeing seem seemed seeming seems seen
        several shall shan she she'd she'll she's shes should should've shouldn shouldn't shouldnt since so
        some somebody somehow someone something sometime sometimes somewhat somewhere soon sort still such
        sure take taken takes taking tell telling tells than thank thanks that that'd that'll that's thats
        the their theirs them themselves then thence there there's thereafter thereby therefore therein
        theres thereupon these they they'd they'll they're they've theyre theyve thing things think thinking
        thinks this those though through throughout thru thus til till to together told too took toward
        towards tried tries truly try trying under unless unlike until up upon us use used uses using
        usually ve versus very via vs want wanna wanted wanting wants was wasn wasn't wasnt way ways we we'd
        we'll we're we've well went were weren weren't werent weve what what'd what'll what're what's
        whatever whats when when's whence whenever where where's whereas whereby wherein wheres wherever
        whether which whichever while who who'd who'll who's whoever whole whom whose whos why why's will
        with within without won't wont would would've wouldn wouldn't wouldnt yeah yes yet you you'd you'll
        you're you've youd youll your youre yours yourself yourselves youve
    """,
    "german": """
        ab aber alle allem allen aller alles als also am an andere anderen anderer anderes auch auf aus
        außer bei beim bin bis bist da dabei dadurch dafür dagegen daher damit danach dann daran darauf
        daraus darf darin darum darüber das dass davon dazu dein deine deinem deinen deiner dem den denen
        denn der deren des deshalb dessen dich die dies diese diesem diesen dieser dieses dir doch dort du
        durch dürfen eben ein eine einem einen einer eines einige einigen einmal er erst es etwa etwas euch
        euer eure für ganz gar geben gegen gehabt geht gewesen gibt hab habe haben hallo hat hatte hatten
        hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im immer in ins ist ja jede jedem jeden
        jeder jedes jedoch jemand jene jetzt kann kannst kein keine keinem keinen keiner können könnte
        machen macht man manche mehr mein meine meinem meinen meiner mich mir mit muss musste müssen nach
        nachdem nein nicht nichts noch nun nur ob oder ohne schon sehr sein seine seinem seinen seiner seit
        selbst sich sie sind so sogar solche soll sollen sollte sondern sonst über um und uns unser unsere
        unter viel viele vielen vom von vor wann war waren warum was weder wegen weil weiter welche welchem
        welchen welcher welches wem wen wenn wer werde werden wie wieder will wir wird wirst wo wollen
        worden wurde wurden während würde würden zu zum zur zwar zwischen
    """,
    "french": """
        afin ai ainsi alors après as au aucun aucune auquel aussi autre autres aux avaient avais avait avant
        avec avez avoir avons ayant bien c'est ce ceci cela celle celles celui ces cet cette ceux chaque
        chez ci comme comment contre d'un d'une dans de depuis des deux donc dont du déjà elle elles en
        encore entre es est et étaient étais était étant été être eu eux fait faire fois font hors ici il
        ils j'ai je jusque l'on la laquelle le lequel les lesquels leur leurs lors lorsque lui là ma mais me
        même mêmes mes mieux moi moins mon ne ni non nos notre nous on ont ou où par parce pas pendant peu
        peut peuvent peux plus plusieurs pour pourquoi puis qu'elle qu'il qu'on quand que quel quelle
        quelles quelque quelques quels qui quoi sa sans se sera serait ses si sien son sont sous souvent
        suis sur ta tandis te tel telle tes toi ton toujours tous tout toute toutes très trop tu un une vers
        voici voilà vos votre vous y à ça
    """,
    "spanish": """
        a al algo alguien algún alguna algunas alguno algunos ahora allí ante antes aquel aquella aquellos
        aquí así aun aún aunque bajo bien cada casi como cómo con contra cual cuál cuales cualquier cuando
        cuándo cuanto cuánto de del desde después donde dónde dos durante e el él ella ellas ello ellos en
        entonces entre era eran eres es esa esas ese eso esos esta está están estaba estado estamos estar
        estas este esto estos estoy fue fueron ha había habían hace hacer hacia han hasta hay he la las le
        les lo los luego más me menos mi mí mientras mis mismo mucha mucho muchos muy nada nadie ni ningún
        ninguna no nos nosotros nuestra nuestro nunca o os otra otras otro otros para pero poco por porque
        pueda puede pueden puedo pues que qué quien quién quienes se sea según ser si sí sido siempre sin
        sino sobre solo sólo somos son soy su sus también tampoco tan tanto te tener tengo ti tiene tienen
        toda todas todavía todo todos tras tu tú tus u un una unas uno unos usted ustedes va vamos van vez y
        ya yo
    """,
    "italian": """
        a abbiamo ad ai al alcune alcuni alla alle allo allora altra altre altri altro anche ancora anzi
        aveva avere avete bene c'è che chi ci ciò coi col come con contro così cui da dagli dai dal dalla
        dalle dallo degli dei del della delle dello dentro di dopo dove due dunque e è ecco ed era erano
        essere fa fare fino fra fu già gli ha hai hanno ho i il in infatti invece io l' la le lei li lo loro
        lui ma me mentre mi mia mie miei mio molta molti molto ne negli nei nel nella nelle nello nessun
        nessuno noi non nostra nostro o ogni oppure ora per perché però più poco poi prima proprio può qua
        qual quale quali quando quanto quasi quella quelle quelli quello questa queste questi questo qui se
        sei sempre senza si sia siamo siete sono sopra sotto sta stata stato stesso su sua sue sugli sui sul
        sulla sulle suo suoi tra troppo tu tua tue tuo tutta tutte tutti tutto un una uno vi voi vostra
        vostro
    """,
    "dutch": """
        aan af al alle alleen alles als altijd andere ben bent bij daar daarom dan dat de deze die dit doch
        doen door dus een eens en er geen gewoon had hadden heb hebben hebt heeft heel hem het hier hij hoe
        hun iemand iets ik in is ja je jij jou jouw jullie kan kon kunnen laten maar me meer men met mij
        mijn moet moeten na naar niet niets nog nu of om omdat onder ons onze ook op over reeds te tegen
        toch toen tot u uit uw van veel voor waar waarom want waren was wat we weer wel welke werd wie wij
        wil wilde worden wordt ze zei zelf zich zij zijn zo zonder zou zullen
    """,
    "portuguese": """
        a à ainda algo alguém algum alguma algumas alguns ali ante antes ao aos após aquela aquele aqueles
        aqui aquilo as às assim até bem cada com como contra da das de dela dele deles depois desde dessa
        desse desta deste do dos e é ela elas ele eles em enquanto então entre era eram essa essas esse
        esses esta está estão estar estas este estes estou eu foi foram há isso isto já la lá lhe lhes lo
        mais mas me menos mesmo meu meus minha minhas muita muito muitos na não nas nem nenhum nenhuma no
        nos nós nossa nosso num numa nunca o onde os ou outra outras outro outros para pela pelas pelo pelos
        pode podem por porque pouco quais qual qualquer quando quanto que quê quem são se seja sem sempre
        ser será seu seus si sim só sob sobre somos sou sua suas também tão te tem têm tenho ter teu teve
        toda todas todo todos tu tua tudo um uma umas uns vai vão você vocês vos
    """,
}
STOP_WORDS: Mapping[str, frozenset[str]] = {name: frozenset(text.split()) for name, text in _LISTS.items()}
"""The function words of each language, in lower case."""
LANGUAGES = (*STOP_WORDS, "auto", "none")


def check_language(language: str) -> str:
    """Return ``language``; raise ``ValueError`` if it has no list of function words."""
    if language not in LANGUAGES:
        raise ValueError(f"language={language!r} is not known: pass one of {', '.join(LANGUAGES)}")
    return language


def detect_language(counts: Mapping[str, int]) -> str:
    """Return the language whose function words are the largest share of all words; English if that is below 5 %.

    Parameters
    ----------
    counts : mapping of str to int
        The words of the texts in lower case, and their frequencies.
    """
    frequency = {name: sum(counts.get(word, 0) for word in words) for name, words in STOP_WORDS.items()}
    best = max(frequency, key=lambda name: frequency[name])
    return best if frequency[best] >= _MIN_SHARE * max(sum(counts.values()), 1) else "english"
